"""Measures of each head of attention over sentences.

A row of weights is taken as a distribution: what is negative counts as nothing, and the rest is divided by its sum. A
query that may see a single key has no choice, and is left out of everything; so is a row of zeros. Means are over all
other queries of all sentences alike, but where it says that they are over sentences.

Shape legend: L layers, H heads, Q queries, K keys, N heads of all layers, layer after layer.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

NO_OP = 0.9
"""A head is idle whose queries give one idle token at least so much, in the mean: `almost all`."""

OFFSETS = {"previous": -1, "own": 0, "next": 1}
"""Distances from a query to a key, by name."""


class Attended(NamedTuple):
    """A sentence, without its padding, under all attentions of one kind."""

    weights: Tensor
    """[L, H, Q, K]"""
    idle: Tensor
    """[K] bool: keys that say little, as special tokens and punctuation do. The first key counts as one anyway."""


@dataclass(frozen=True)
class HeadMeasures:
    """Measures of every head [L, H], or of every two heads. NaN where there was nothing to measure."""

    entropy: Tensor
    """Mean entropy of a row, in nats: 0 if all weight is on one key."""
    entropy_share: Tensor
    """The same, divided by that of a uniform row over the keys that may be seen: from 0 to 1."""
    distance: Tensor
    """Tokens between the query and what it looks at, weighed, whichever way."""
    previous: Tensor
    """The share of weight on the key before the query's own place, and so on."""
    own: Tensor
    next: Tensor
    first: Tensor
    """Mean weight on the first key of the sentence."""
    last: Tensor
    """Mean weight on the last key, which is the end of sentence of a source."""
    coverage: Tensor
    """The mean over keys of min(1, what all queries give the key), by sentence: what coverage penalties ask for (Wu et
    al. 2016, https://arxiv.org/abs/1609.08144, eq. 14). At most Q / K where there are fewer queries than keys."""
    idle: Tensor
    """The most that one idle token of a sentence is given in the mean over queries, by sentence (Clark et al. 2019,
    https://arxiv.org/abs/1906.04341, section 3.2)."""
    distances: Tensor
    """[N, N]: the Jensen-Shannon distance of two heads' rows, the root of the divergence in bits: from 0 (alike) to 1
    (nothing in common)."""
    sentences: int

    @property
    def no_op(self) -> Tensor:
        """[L, H] bool: heads that almost always look at one idle token, and so write the same whatever is read."""
        return self.idle >= NO_OP

    @property
    def nearest(self) -> Tensor:
        """[N]: the head that is most alike; a head itself where there is no other."""
        others = self.distances.clone().fill_diagonal_(math.inf)
        return others.nan_to_num(math.inf).argmin(1) if len(others) > 1 else torch.zeros(1, dtype=torch.int64)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        tensors = {name: x.tolist() for name, x in vars(self).items() if isinstance(x, Tensor)}
        return {**tensors, "no_op": self.no_op.tolist(), "sentences": self.sentences}


def measure_heads(sentences: Iterable[Attended], *, causal: bool = False) -> HeadMeasures:
    """Measure all heads of a kind of attention over sentences, one at a time.

    causal: a query sees no key that stands after it.

    Raises ValueError without any sentence.
    """
    sums: dict[str, Tensor] = {}
    rows = pairs = torch.zeros(())
    count = 0
    for weights, idle in sentences:
        p, at, visible = _distributions(weights, causal)
        real = p.sum(-1) > 0  # [L, H, Q]
        flat, there = p.flatten(0, 1), real.flatten(0, 1)
        both = there[:, None] & there
        found = {name: (value * real).sum(-1) for name, value in _of_queries(p, at, visible).items()}
        found |= _of_sentence(p, real, idle)
        found["distances"] = (jensen_shannon(flat) * both).sum(-1)
        sums = {name: sums.get(name, 0) + value for name, value in found.items()}
        rows, pairs, count = rows + real.sum(-1), pairs + both.sum(-1), count + 1
    if not count:
        raise ValueError("no sentence to measure heads over: give one")
    divisors = {"coverage": sums.pop("sentences"), "distances": pairs}
    divisors["idle"] = divisors["coverage"]
    means = {name: value / divisors.get(name, rows) for name, value in sums.items()}
    return HeadMeasures(**means, sentences=count)


def jensen_shannon(p: Tensor) -> Tensor:
    """Return the distance of every two heads' distributions [N, Q, K], row by row: [N, N, Q], from 0 to 1."""
    own = torch.special.entr(p).sum(-1)
    divergences = [torch.special.entr((one + p) / 2).sum(-1) - (own[n] + own) / 2 for n, one in enumerate(p)]
    return (torch.stack(divergences) / math.log(2)).clamp(0, 1).sqrt()


def _distributions(weights: Tensor, causal: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Rows with a choice [L, H, Q', K], where they stand [Q'], and how many keys each may see [Q']."""
    num_queries, num_keys = weights.shape[-2:]
    at = torch.arange(num_queries)
    visible = at + 1 if causal else torch.full_like(at, num_keys)
    chosen = visible > 1
    given = weights[:, :, chosen].double().clamp(min=0)
    total = given.sum(-1, keepdim=True)
    return given / total.masked_fill(total == 0, 1), at[chosen], visible[chosen]


def _of_queries(p: Tensor, at: Tensor, visible: Tensor) -> dict[str, Tensor]:
    """[L, H, Q'] each."""
    offsets = torch.arange(p.shape[-1]) - at[:, None]
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
    """[L, H] each: zeros where no query had a choice, which `sentences` does not count then."""
    idle = idle.clone()
    idle[:1] = True
    taken = p.sum(-2)
    queries = real.sum(-1)
    return {
        "coverage": taken.clamp(max=1).mean(-1),
        "idle": (taken / queries.clamp(min=1)[..., None])[..., idle].amax(-1),
        "sentences": queries > 0,
    }
