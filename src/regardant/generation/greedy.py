"""Greedy search: the likeliest token at every step. Beam search with one beam, without its bookkeeping.

Shape legend: B sentences still being written, t tokens written, V vocabulary.
"""

import torch
from torch import Tensor

from regardant.data.vocabulary import EOS, SOS
from regardant.generation.constraints import Constraints
from regardant.generation.hypothesis import Hypothesis
from regardant.generation.steps import normalised, without
from regardant.models.base import SequenceToSequence


def greedy_search(
    model: SequenceToSequence,
    source: Tensor,
    limits: list[int],
    constraints: Constraints,
    length_penalty: float,
) -> list[Hypothesis]:
    """One hypothesis for each sentence of source [B, S], of at most limits[b] tokens with EOS."""
    state = model.start(model.encode(source), 1, max(limits))
    found: dict[int, Hypothesis] = {}
    present = torch.arange(len(source), device=source.device)
    longest = torch.tensor(limits, device=source.device)
    tokens = torch.full_like(present, SOS)[:, None]  # [B, 1 + t], SOS first
    totals = torch.zeros(len(source), device=source.device)
    while len(present):
        log_probabilities = normalised(model.step(tokens[:, -1:], state))
        constraints.apply(log_probabilities, tokens[:, None, 1:])
        best, newest = log_probabilities[:, 0].max(-1)
        totals = totals + best
        tokens = torch.cat([tokens, newest[:, None]], dim=1)
        done = (newest == EOS) | (longest < tokens.shape[1]) | ~best.isfinite()  # the last is an error
        if not done.any():
            continue
        ended = zip(present[done].tolist(), tokens[done, 1:].tolist(), totals[done].tolist(), strict=True)
        for sentence, written, total in ended:
            found[sentence] = Hypothesis.of(written, total, length_penalty)
        going = without(done)
        present, longest, tokens, totals = present[going], longest[going], tokens[going], totals[going]
        if len(going):
            constraints.keep(going)
            state.keep(going)
    return [found[sentence] for sentence in range(len(source))]
