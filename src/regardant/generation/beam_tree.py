"""Beam search of one sentence that keeps every candidate, for inspection.

It finds the same hypotheses as `BeamSearch`, which a test asserts, but is slower: each candidate is a Python object.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from regardant.data.vocabulary import EOS, NEVER_WRITTEN, SOS
from regardant.generation.config import GenerationConfig
from regardant.generation.length_penalty import impossible, length_penalised
from regardant.generation.trees import TreeTokens
from regardant.models.base import SequenceToSequenceModel

Fate = Literal["kept", "ended", "dropped"]


@dataclass(frozen=True)
class BeamCandidate:
    """One of the 2 W best continuations of a step."""

    number: int
    """Index in `BeamTree.candidates`."""
    parent: int
    """Number of the candidate that is continued; -1 is the start of sentence."""
    step: int
    """Number of tokens, EOS counted."""
    token: int
    log_probability: float
    """Log-probability of all tokens of the candidate, in nats."""
    score: float
    """Log-probability after the length penalty."""
    fate: Fate


@dataclass(frozen=True)
class BeamTree:
    """Candidates of a whole beam search, step by step, the likeliest of a step first."""

    candidates: list[BeamCandidate]
    best: list[int]
    """Numbers of the last candidates of the n best hypotheses, best first."""

    def path(self, number: int) -> list[int]:
        """Return the numbers of a hypothesis' candidates, from the first token to candidate `number`."""
        found = []
        while number != -1:
            found.append(number)
            number = self.candidates[number].parent
        return found[::-1]


def beam_tree(
    model: SequenceToSequenceModel, source: Any, limit: int, config: GenerationConfig, trees: TreeTokens | None = None
) -> BeamTree:
    """Search for the n best targets, of at most `limit` tokens with EOS, of a batch of one source.

    With `trees` every target is a tree of these tokens. The model must be in evaluation mode. Raises RunError if the
    model's scores are NaN.
    """
    with torch.inference_mode():
        search = _Search(model, source, limit, config, trees)
        while not search.is_over():
            search.step()
    return BeamTree(search.candidates, search.best())


class _Search:
    def __init__(
        self,
        model: SequenceToSequenceModel,
        source: Any,
        limit: int,
        config: GenerationConfig,
        trees: TreeTokens | None,
    ) -> None:
        self.model, self.limit, self.config, self.device = model, limit, config, source.device
        self.trees = trees
        self.state = model.start(model.encode(source), config.beam_size, limit)
        self.candidates: list[BeamCandidate] = []
        self.live: list[BeamCandidate] = [BeamCandidate(-1, -1, 0, SOS, 0.0, 0.0, "kept")]
        self.ended: list[BeamCandidate] = []

    def step(self) -> None:
        """Feed the newest token of each live hypothesis; sort the best continuations into kept, ended and dropped."""
        empty = self.config.beam_size - len(self.live)
        newest = torch.tensor([[one.token for one in self.live] + [EOS] * empty], device=self.device)
        logits = self.model.step(newest, self.state)[0, : len(self.live)]
        log_probabilities = torch.log_softmax(logits, dim=-1, dtype=torch.float32)
        log_probabilities[:, list(NEVER_WRITTEN)] = -torch.inf
        for row, one in enumerate(self.live):
            log_probabilities[row, _repeats(self._tokens(one), self.config.no_repeat_ngram_size)] = -torch.inf
        if self.trees is not None:
            written = torch.tensor([[self._tokens(one) for one in self.live]], dtype=torch.int64, device=self.device)
            limits = torch.tensor([self.limit], device=self.device)
            log_probabilities.masked_fill_(self.trees.forbidden(written, limits)[0], -torch.inf)
        totals = torch.tensor([one.log_probability for one in self.live], device=self.device)
        sums = (totals[:, None] + log_probabilities).flatten()
        best, places = sums.topk(min(2 * self.config.beam_size, len(sums)))
        self._sort(best.tolist(), places.tolist(), log_probabilities.shape[1])

    def _sort(self, totals: Sequence[float], places: Sequence[int], vocab_size: int) -> None:
        before, self.live, parents = self.live, [], []
        for rank, (total, place) in enumerate(zip(totals, places, strict=True)):
            beam, token = divmod(place, vocab_size)
            step = before[beam].step + 1
            fate: Fate = "dropped"
            if token == EOS:
                fate = "ended" if rank < self.config.beam_size else "dropped"
            elif len(self.live) < self.config.beam_size:
                fate = "kept"
            if not total > -torch.inf:  # the continuation is masked; NaN is no candidate either
                continue
            score = length_penalised(total, step, self.config.length_penalty)
            found = BeamCandidate(len(self.candidates), before[beam].number, step, token, total, score, fate)
            self.candidates.append(found)
            if fate == "ended":
                self.ended.append(found)
            elif fate == "kept":
                self.live.append(found)
                parents.append(beam)
        empty = self.config.beam_size - len(parents)
        self.state.reorder(torch.tensor([parents + [0] * empty], device=self.device))

    def is_over(self) -> bool:
        """Return whether the stopping rule of `BeamSearch` holds."""
        if not self.live or self.live[0].step >= self.limit:
            return True
        scores = sorted((one.score for one in self.ended), reverse=True)
        if len(scores) < self.config.nbest:
            return False
        to_beat, total = scores[self.config.nbest - 1], self.live[0].log_probability
        reachable = length_penalised(total, self.limit, self.config.length_penalty)
        return reachable <= to_beat or (len(scores) >= self.config.beam_size and self.live[0].score <= to_beat)

    def best(self) -> list[int]:
        """Return the numbers of the n best hypotheses: those that ended, by score, then the live."""
        found = sorted(self.ended, key=lambda one: one.score, reverse=True)[: self.config.nbest]
        found += self.live[: self.config.nbest - len(found)]
        if not found:
            raise impossible()
        return [one.number for one in found]

    def _tokens(self, last: BeamCandidate) -> list[int]:
        path = BeamTree(self.candidates, []).path(last.number)
        return [self.candidates[number].token for number in path]


def _repeats(written: Sequence[int], size: int) -> list[int]:
    """Return the tokens that would write an n-gram of this size a second time; none if size is 0."""
    if not size or len(written) < size:
        return []
    ending = written[len(written) - size + 1 :]
    starts = range(len(written) - size + 1)
    return [written[start + size - 1] for start in starts if written[start : start + size - 1] == ending]
