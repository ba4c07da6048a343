"""Strided attention: a query attends to every `stride`-th key, up to a fixed number of them.

Query i attends to the keys at i, i - s, i - 2s, ..., i - k s, and to as many later ones without a causal mask. The
number is fixed, so that the cost is n x k; with `num_strides: all` a query attends to all strided keys, at a cost of
n x n / s.

This is the strided half of the pattern of Child et al. 2019, https://arxiv.org/abs/1904.10509, in all heads and layers.
Alone it never mixes positions of different remainders modulo s. Child et al. combine it with near keys, at a stride
near sqrt(n); the mechanism `sparse` joins near and strided keys in one softmax.
"""

from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor

from regardant.attention.interface import AttentionConfig, Keys, Queries, Values
from regardant.attention.masks import View
from regardant.attention.patterns import PatternAttention
from regardant.attention.tiles import PartialSoftmax, Tile, near_tiles

EVERYWHERE = 1 << 30
"""Distance beyond the length of any sequence."""


class StridedConfig(AttentionConfig):
    """Softmax over every s-th key."""

    kind: Literal["strided"] = "strided"

    stride: int = Field(16, gt=0)
    """Distance from one key to the next, in tokens."""

    num_strides: Annotated[int, Field(ge=0)] | Literal["all"] = 16
    """Number of strided keys that a query attends to on each side. all: every one, at a cost of n x n / stride."""

    def build(self, *, num_heads: int, head_size: int) -> "Strided":
        return Strided(self.stride, self.num_strides, head_size)


class Strided(PatternAttention):
    """Exact attention to keys at multiples of the stride from the query."""

    def __init__(self, stride: int, num_strides: int | Literal["all"], head_size: int) -> None:
        super().__init__(head_size, reach=EVERYWHERE if num_strides == "all" else stride * num_strides)
        self.stride = stride

    def pattern(self, queries: Tensor, keys: Tensor) -> Tensor:
        distance = (queries[:, None] - keys[None, :]).abs()
        return (distance % self.stride == 0) & (distance <= self.reach)

    def attend(self, q: Queries, k: Keys, v: Values, view: View) -> PartialSoftmax:
        tiles = strided_tiles(k.shape[2], self.stride, self.reach, causal=view.causal)
        return self.attend_tiles(q, k, v, view, tiles, self.pattern)


def strided_tiles(length: int, stride: int, reach: int, *, causal: bool) -> list[Tile]:
    """Return tiles of every query with the keys at multiples of the stride, up to `reach` tokens away.

    Tokens of one remainder modulo the stride attend only to each other, so that each remainder is a window by itself.
    """
    tiles = []
    near = min(reach // stride, length)
    for first in range(min(stride, length)):
        teeth = range(first, length, stride)
        for rows, columns in near_tiles(len(teeth), before=near, after=0 if causal else near):
            tiles.append((_between(teeth, rows), _between(teeth, columns)))
    return tiles


def _between(teeth: range, part: slice) -> slice:
    chosen = teeth[part]
    return slice(chosen.start, chosen[-1] + 1, chosen.step)
