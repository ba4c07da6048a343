"""Measures of each attention head over sentences.

A row of weights is treated as a distribution: negative weights are set to zero and the rest normalised. Queries that
may attend to fewer than two keys and rows of zeros are left out. Means are over all other queries of all sentences,
unless a field says that they are over sentences or over some queries.

Shape legend: L layers, H heads, Q queries, K keys, N heads of all layers, layer after layer.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

NO_OP = 0.9
"""Mean weight on one idle token from which a head counts as a no-op: `almost all`."""

OFFSETS = {"previous": -1, "own": 0, "next": 1}
"""Distances from a query to a key, by name."""


class Attended(NamedTuple):
    """Weights of all attentions of one kind over a sentence without padding."""

    weights: Tensor
    """[L, H, Q, K]"""
    idle: Tensor
    """[K] bool: keys with little content, such as special tokens and punctuation. The first key always counts."""
    mask: Tensor | None = None
    """[L, H, Q, K] bool, or [Q, K] for all heads: True = may attend, by the view and by the mechanism itself. None: may
    attend to all keys or, if attention is causal, to those that are not after the query."""


@dataclass(frozen=True)
class HeadMeasures:
    """Measures of every head [L, H], or of every pair of heads [N, N]. NaN where no query was measured."""

    entropy: Tensor
    """Mean entropy of a row, in nats: 0 if all weight is on one key."""
    entropy_share: Tensor
    """Mean entropy of a row relative to that of a uniform row over the keys that are not masked: from 0 to 1."""
    distance: Tensor
    """Mean absolute distance from query to key, weighted by attention, in tokens."""
    previous: Tensor
    """Mean weight on the key one position before the query, over the queries with such a key."""
    own: Tensor
    """Mean weight on the key at the query's position, over the queries with such a key."""
    next: Tensor
    """Mean weight on the key one position after the query, masked or not, over the queries with such a key."""
    first: Tensor
    """Mean weight on the first key of the sentence."""
    last: Tensor
    """Mean weight on the last key: the end-of-sentence token of a source."""
    coverage: Tensor
    """Mean over keys of min(1, total weight from all queries), averaged over sentences, as in coverage penalties
    (Wu et al. 2016, https://arxiv.org/abs/1609.08144, eq. 14). At most Q / K if there are fewer queries than keys."""
    idle: Tensor
    """Largest mean weight over queries on one idle token, averaged over sentences (Clark et al. 2019,
    https://arxiv.org/abs/1906.04341, section 3.2)."""
    distances: Tensor
    """[N, N] mean Jensen-Shannon distance between the rows of two heads, the square root of the divergence in bits: 0
    (equal) to 1 (disjoint)."""
    sentences: int

    @property
    def no_op(self) -> Tensor:
        """[L, H] bool: heads that give one idle token almost all weight, so that their output hardly varies."""
        return self.idle >= NO_OP

    @property
    def nearest(self) -> Tensor:
        """[N] index of the most similar other head; of the head itself if there is no other to compare."""
        others = self.distances.clone().fill_diagonal_(math.inf).nan_to_num(math.inf)
        return torch.where(others.isinf().all(1), torch.arange(len(others)), others.argmin(1))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        tensors = {name: x.tolist() for name, x in vars(self).items() if isinstance(x, Tensor)}
        return {**tensors, "no_op": self.no_op.tolist(), "sentences": self.sentences}


def measure_heads(sentences: Iterable[Attended], *, causal: bool = False) -> HeadMeasures:
    """Measure all heads of one kind of attention, one sentence at a time.

    causal: a query of a sentence without a mask may attend to no later key.

    Raises ValueError if there is no sentence.
    """
    sums: dict[str, Tensor] = {}
    counts: dict[str, Tensor] = {}
    number = 0
    for weights, idle, mask in sentences:
        p, visible = _distributions(weights, mask, causal)
        real = p.sum(-1) > 0  # [L, H, Q]
        there = real.flatten(0, 1)
        both = there[:, None] & there  # [N, N, Q]
        found = {name: value.sum(-1) for name, value in _of_queries(p, visible).items()}
        found |= _of_sentence(p, real, idle)
        found["distances"] = (jensen_shannon(p.flatten(0, 1)) * both).sum(-1)
        sums = {name: sums.get(name, 0) + value for name, value in found.items()}
        counts = {name: counts.get(name, 0) + value for name, value in _counts(real, both, p.shape[-1]).items()}
        number += 1
    if not number:
        raise ValueError("no sentence to measure heads over: give one")
    means = {name: value / counts.get(name, counts["queries"]) for name, value in sums.items()}
    return HeadMeasures(**means, sentences=number)


def jensen_shannon(p: Tensor) -> Tensor:
    """Return the Jensen-Shannon distance of every pair of heads [N, Q, K] at each query: [N, N, Q], from 0 to 1."""
    own = torch.special.entr(p).sum(-1)
    divergences = [torch.special.entr((one + p) / 2).sum(-1) - (own[n] + own) / 2 for n, one in enumerate(p)]
    return (torch.stack(divergences) / math.log(2)).clamp(0, 1).sqrt()


def _distributions(weights: Tensor, mask: Tensor | None, causal: bool) -> tuple[Tensor, Tensor]:
    """Return the normalised rows [L, H, Q, K], zeros where fewer than two keys are visible, and the numbers of visible
    keys [#L, #H, Q], two at least."""
    if mask is None:
        mask = torch.ones(weights.shape[-2:], dtype=torch.bool)
        mask = mask.tril() if causal else mask
    visible = mask.sum(-1)
    given = weights.double().clamp(min=0) * (visible > 1)[..., None]
    total = given.sum(-1, keepdim=True)
    return given / total.masked_fill(total == 0, 1), visible.clamp(min=2)


def _of_queries(p: Tensor, visible: Tensor) -> dict[str, Tensor]:
    """Return the measures of each query [L, H, Q] by name: zeros for rows of zeros."""
    offsets = torch.arange(p.shape[-1]) - torch.arange(p.shape[-2])[:, None]
    entropy = torch.special.entr(p).sum(-1)
    return {
        "entropy": entropy,
        "entropy_share": entropy / visible.log(),
        "distance": (p * offsets.abs()).sum(-1),
        **{name: (p * (offsets == offset)).sum(-1) for name, offset in OFFSETS.items()},
        "first": p[..., 0],
        "last": p[..., -1],
    }


def _of_sentence(p: Tensor, real: Tensor, idle: Tensor) -> dict[str, Tensor]:
    """Return the measures of a sentence [L, H] by name: zeros if no query was measured."""
    idle = idle.clone()
    idle[:1] = True
    taken = p.sum(-2)
    return {
        "coverage": taken.clamp(max=1).mean(-1),
        "idle": (taken / real.sum(-1).clamp(min=1)[..., None])[..., idle].amax(-1),
    }


def _counts(real: Tensor, both: Tensor, num_keys: int) -> dict[str, Tensor]:
    """Return the numbers of queries, or of sentences, that the sums of measures are divided by, by name.

    Args:
        real: [L, H, Q] bool, the measured queries.
        both: [N, N, Q] bool, the queries that are measured in both heads.
        num_keys: number of keys of the sentence.
    """
    at, queries = torch.arange(real.shape[-1]), real.sum(-1)
    has_key = {name: (at + offset >= 0) & (at + offset < num_keys) for name, offset in OFFSETS.items()}
    of_offsets = {name: (real & there).sum(-1) for name, there in has_key.items()}
    sentences = (queries > 0).long()
    return {"queries": queries, "coverage": sentences, "idle": sentences, "distances": both.sum(-1), **of_offsets}
