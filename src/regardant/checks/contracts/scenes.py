"""Queries, keys and values under every kind of view, on which contracts of attention are checked.

Shape legend: as in `regardant.attention.interface`.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regardant.attention import Attention, View

BATCH, NUM_HEADS, HEAD_SIZE, LENGTH = 3, 4, 8, 6

REAL = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]]).bool()
"""[B, K]: three sentences, of which two are padded."""

SLOPES = torch.tensor([0.5, 0.25, -0.25, 1.0])


def distance_bias(queries: Tensor, keys: Tensor) -> Tensor:
    """Return a bias [H, Q, K] that falls or rises with the distance of positions [Q] and [K], by head."""
    return -SLOPES[:, None, None] * (queries[:, None] - keys[None, :]).abs()


def _any_pairs() -> Tensor:
    pairs = torch.rand(BATCH, NUM_HEADS, LENGTH, LENGTH, generator=torch.Generator().manual_seed(1)) < 0.5
    return pairs | torch.eye(LENGTH).bool()


def _band() -> Tensor:
    return torch.ones(1, 1, LENGTH, LENGTH).bool().tril(1).triu(-1)


def _sparse_pairs() -> Tensor:
    """Return a mask as sparse as `View.listed_pairs` asks: one query with two keys, of unequal weights."""
    pairs = torch.zeros(1, 1, LENGTH, LENGTH).bool()
    pairs[..., 3, [1, 4]] = True
    return pairs


def _fully_masked_query() -> Tensor:
    pairs = _any_pairs()
    pairs[1, 2, 3] = False
    return pairs


@dataclass(frozen=True)
class Scene:
    """Sizes of queries and keys, and the view that masks and biases them."""

    fields: dict[str, Any]
    """Fields of the view, by name."""
    num_queries: int = LENGTH
    num_keys: int = LENGTH

    def view(self) -> View:
        """Return a new view with the fields of the scene."""
        return View(**self.fields)

    @functools.cached_property
    def visible(self) -> Tensor:
        """Mask [B, H, Q, K] of pairs that the view lets attend, built pair by pair. Read-only: contracts share it."""
        sees = torch.zeros(BATCH, NUM_HEADS, self.num_queries, self.num_keys).bool()
        for b, h, i, j in torch.cartesian_prod(*(torch.arange(n) for n in sees.shape)).tolist():
            sees[b, h, i, j] = self._sees(b, h, i, j)
        return sees

    def _sees(self, b: int, h: int, i: int, j: int) -> bool:
        view = self.view()
        if view.keys is not None and not view.keys[b, j]:
            return False
        if view.pairs is not None and not view.pairs.expand(BATCH, NUM_HEADS, -1, -1)[b, h, i, j]:
            return False
        if not view.causal:
            return True
        at_keys: Sequence[int] = range(self.num_keys) if view.key_positions is None else view.key_positions.tolist()
        at_queries = at_keys[-self.num_queries :] if view.query_positions is None else view.query_positions.tolist()
        return at_keys[j] <= at_queries[i]

    def attended(self, attention: Attention) -> Tensor:
        """Return a mask [B, H, Q, K] of pairs that both the view and the mechanism let attend."""
        q, k, _ = self.tensors()
        return self.visible & attention.mask(q, k, self.view())

    def tensors(self, dtype: torch.dtype = torch.float32, requires_grad: bool = False) -> list[Tensor]:
        """Return q, k and v of unit variance."""
        return draw(self.num_queries, self.num_keys, dtype=dtype, requires_grad=requires_grad)


def draw(
    num_queries: int,
    num_keys: int,
    *,
    key_heads: int = NUM_HEADS,
    value_size: int = HEAD_SIZE,
    dtype: torch.dtype = torch.float32,
    requires_grad: bool = False,
) -> list[Tensor]:
    """Return q, k and v of unit variance, the same every time."""
    generator = torch.Generator().manual_seed(num_queries + 100 * num_keys)
    shapes = [(NUM_HEADS, num_queries, HEAD_SIZE), (key_heads, num_keys, HEAD_SIZE), (key_heads, num_keys, value_size)]
    drawn = [torch.randn(BATCH, *shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return [x.to(dtype).requires_grad_(requires_grad) for x in drawn]


SCENES = {
    "everything": Scene({}),
    "more-queries": Scene({}, num_queries=8),
    "causal": Scene({"causal": True}),
    "the-last-queries": Scene({"causal": True}, num_queries=2),
    "padded": Scene({"keys": REAL}),
    "padded-in-front": Scene({"keys": REAL.flip(1)}),
    "nothing-but-padding": Scene({"keys": REAL & torch.tensor([True, False, True])[:, None]}),
    "causal-and-padded": Scene({"causal": True, "keys": REAL}),
    "causal-and-padded-in-front": Scene({"causal": True, "keys": REAL.flip(1)}),
    "one-query": Scene({"causal": True, "keys": REAL}, num_queries=1),
    "pairs": Scene({"pairs": _any_pairs()}),
    "the-same-pairs-for-all": Scene({"pairs": _band()}),
    "sparse-pairs": Scene({"pairs": _sparse_pairs()}),
    "a-fully-masked-query": Scene({"pairs": _fully_masked_query()}),
    "biased": Scene({"bias": distance_bias}),
    "causal-padded-and-biased": Scene({"causal": True, "keys": REAL, "bias": distance_bias}),
    "everything-at-once": Scene({"causal": True, "keys": REAL, "pairs": _any_pairs(), "bias": distance_bias}),
    "any-positions": Scene(
        {
            "causal": True,
            "bias": distance_bias,
            "query_positions": torch.tensor([4, 0, 2]),
            "key_positions": torch.tensor([5, 0, 3, 1, 4, 2]),
        },
        num_queries=3,
    ),
    "one-query-in-the-middle": Scene({"causal": True, "query_positions": torch.tensor([2])}, num_queries=1),
    "late-keys": Scene(
        {"causal": True, "bias": distance_bias, "key_positions": torch.arange(10, 10 + LENGTH)}, num_queries=2
    ),
}

FULL_SCENES = (
    "more-queries",
    "nothing-but-padding",
    "causal-and-padded-in-front",
    "everything-at-once",
    "any-positions",
)
"""Scenes that together ask for every field of a view, for expensive checks."""
