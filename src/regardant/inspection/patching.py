"""Activation patching, which locates the vectors of a pass that carry an answer.

A model reads a clean and a corrupted text of equal length. In the corrupted pass, the residual stream of one layer at
one position is replaced by that of the clean pass, and the later layers are computed from it. The share restored is

    (log p_patched - log p_corrupted) / (log p_clean - log p_corrupted)

of the log-probability of an answer: 1 if the vector carries the whole difference between the texts, 0 if it carries
none. The share may lie outside 0 to 1.

Meng et al. 2022, "Locating and editing factual associations in GPT", https://arxiv.org/abs/2202.05262, section 2.1,
where the corrupted text is the clean one with noise; with a text of other words: Vig et al. 2020,
https://arxiv.org/abs/2004.12265, section 3.

Shape legend: L layers, T tokens, N rows of a pass, M d_model.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from regardant.inspection.lens import residual_stack
from regardant.models.base import CausalModel

TOKENS_AT_ONCE = 2048
"""Largest number of tokens in one pass over copies of a text, unless a single text has more. Scores of so many tokens
over a vocabulary of 32,000 take 0.26 GB in float32."""

StreamTensors = Mapping[str, Tensor]
"""Tensors of a residual stream by name, [N, T, M]: one, or two with reversible residuals."""


@dataclass(frozen=True)
class Patching:
    """Share of an answer that each vector of the clean pass restores."""

    restored: Tensor
    """[L + 1, T] shares, before the first layer and after each."""
    answer: int
    """Id of the answer."""
    clean: float
    """Log-probability of the answer after the clean text, in nats."""
    corrupted: float
    """Log-probability of the answer after the corrupted text, in nats."""


def patch_positions(model: CausalModel, clean: Tensor, corrupted: Tensor) -> Patching:
    """Patch each layer at each position. The answer is the likeliest token after the clean text.

    The model must be in evaluation mode. `clean` and `corrupted` are token ids [T]. Costs L + 1 passes over T copies.

    Raises:
        ValueError: no residual stream leads to the head, the texts have unequal lengths, or both make the answer
            equally likely, so that there is nothing to restore.
    """
    layers = residual_stack(model).layers
    if clean.shape != corrupted.shape:
        raise ValueError(f"the texts have {len(clean)} and {len(corrupted)} tokens: give two of equal length")
    with torch.no_grad():
        with _kept(layers) as kept:
            of_clean = _next_token(model, clean[None])[0]
        answer = int(of_clean.argmax())
        with_corrupted = float(_next_token(model, corrupted[None])[0, answer])
        gap = float(of_clean[answer]) - with_corrupted
        if abs(gap) < 1e-6:
            raise ValueError("both texts make the answer equally likely: give two that differ in it")
        rows = []
        for depth in range(len(layers) + 1):
            patched = _log_probabilities(model, layers, depth, kept[depth], corrupted, answer)
            rows.append((patched - with_corrupted) / gap)
    return Patching(torch.stack(rows).cpu(), answer, float(of_clean[answer]), with_corrupted)


def rows_at_once(length: int) -> int:
    """Return the number of copies of a text of `length` tokens that one pass reads."""
    return max(1, TOKENS_AT_ONCE // length)


def _log_probabilities(
    model: CausalModel, layers: nn.ModuleList, depth: int, kept: StreamTensors, text: Tensor, answer: int
) -> Tensor:
    """Return the log-probability of the answer with each position patched after `depth` layers [T]."""
    found = []
    for positions in torch.arange(len(text), device=text.device).split(rows_at_once(len(text))):
        with _patched(layers, depth, kept, positions):
            found.append(_next_token(model, text.expand(len(positions), -1))[:, answer])
    return torch.cat(found)


def _next_token(model: CausalModel, text: Tensor) -> Tensor:
    """Return the log-probabilities [N, V] of the token after texts [N, T]."""
    vectors = model.vectors(text=text)
    last = replace(vectors, values=vectors.values[:, -1:])
    return model.head.scores(last)[:, 0].float().log_softmax(-1)


@contextmanager
def _kept(layers: nn.ModuleList) -> Iterator[list[StreamTensors]]:
    """Yield the residual stream before the first layer and after each."""
    kept: list[StreamTensors] = []

    def before(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        kept.append(_tensors(inputs[0]))

    def after(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        kept.append(_tensors(inputs[0]))

    with ExitStack() as listening:
        listening.callback(layers[0].register_forward_pre_hook(before).remove)
        for layer in layers:
            listening.callback(layer.register_forward_hook(after).remove)
        yield kept


@contextmanager
def _patched(layers: nn.ModuleList, depth: int, kept: StreamTensors, positions: Tensor) -> Iterator[None]:
    """Replace the stream of row i at `positions[i]` by the kept one, after `depth` layers."""
    rows = torch.arange(len(positions), device=positions.device)

    def patch(layer: nn.Module, inputs: tuple[Any, ...], *output: Any) -> None:
        for name, x in _tensors(inputs[0]).items():
            setattr(inputs[0], name, x.index_put((rows, positions), kept[name][0, positions]))

    if depth == 0:
        handle = layers[0].register_forward_pre_hook(patch)
    else:
        handle = layers[depth - 1].register_forward_hook(patch)
    try:
        yield
    finally:
        handle.remove()


def _tensors(stream: Any) -> StreamTensors:
    return {name: x for name, x in vars(stream).items() if isinstance(x, Tensor)}
