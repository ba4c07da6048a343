"""Near, strided and global keys in one softmax: the union of the patterns.

Child et al. 2019 (https://arxiv.org/abs/1904.10509) combine local and strided keys, Longformer (Beltagy et al. 2020,
https://arxiv.org/abs/2004.05150) and BigBird (Zaheer et al. 2020, https://arxiv.org/abs/2007.14062) local and global
ones. The first `num_global` tokens are global: they attend to every token, and every token attends to them.
"""

from functools import partial
from typing import Literal

from pydantic import Field
from torch import Tensor

from regardant.attention.interface import AttentionConfig, Keys, Queries, Values
from regardant.attention.masks import View
from regardant.attention.patterns import PatternAttention
from regardant.attention.strided import strided_tiles
from regardant.attention.tiles import PartialSoftmax, blocks, near_tiles


class SparseConfig(AttentionConfig):
    """Softmax over near, strided and global keys together."""

    kind: Literal["sparse"] = "sparse"

    window: int = Field(128, ge=0)
    """Largest distance of near keys from the query, on each side, in tokens."""

    stride: int = Field(64, gt=0)
    """Distance from one strided key to the next, in tokens."""

    num_strides: int = Field(8, ge=0)
    """Number of strided keys that a query attends to on each side. 0: none."""

    num_global: int = Field(1, ge=0)
    """Number of first tokens that are global. 0: none."""

    def build(self, *, num_heads: int, head_size: int) -> "Sparse":
        return Sparse(self, head_size)


class Sparse(PatternAttention):
    """Exact attention to the union of a band, strided keys, and the first rows and columns."""

    def __init__(self, config: SparseConfig, head_size: int) -> None:
        far = config.stride * config.num_strides
        super().__init__(head_size, reach=max(config.window, far), first=config.num_global)
        self.window = config.window
        self.stride = config.stride
        self.far = far

    def pattern(self, queries: Tensor, keys: Tensor) -> Tensor:
        is_global = (queries < self.first)[:, None] | (keys < self.first)[None, :]
        return is_global | self._is_near(queries, keys) | self._is_strided(queries, keys)

    def attend(self, q: Queries, k: Keys, v: Values, view: View) -> PartialSoftmax:
        length, causal = k.shape[2], view.causal
        first, among = min(self.first, length), partial(self.attend_tiles, q, k, v, view)
        # A pair in several patterns counts in the first of them.
        of_global = [(rows, slice(0, first if causal else length)) for rows in blocks(0, first)]
        near = near_tiles(length, before=self.window, after=0 if causal else self.window, start=first)
        part = among([*of_global, *near], self._is_of_global_or_near)
        if self.far:
            part = part.merge(among(strided_tiles(length, self.stride, self.far, causal=causal), self._is_only_strided))
        if first:
            to_global = [(rows, slice(0, first)) for rows in blocks(0, length)]
            part = part.merge(among(to_global, self._is_only_to_global))
        return part

    def _is_near(self, queries: Tensor, keys: Tensor) -> Tensor:
        return (queries[:, None] - keys[None, :]).abs() <= self.window

    def _is_strided(self, queries: Tensor, keys: Tensor) -> Tensor:
        distance = (queries[:, None] - keys[None, :]).abs()
        return (distance % self.stride == 0) & (distance <= self.far)

    def _is_plain(self, queries: Tensor, keys: Tensor) -> Tensor:
        return (queries >= self.first)[:, None] & (keys >= self.first)[None, :]

    def _is_of_global_or_near(self, queries: Tensor, keys: Tensor) -> Tensor:
        return (queries < self.first)[:, None] | (self._is_near(queries, keys) & self._is_plain(queries, keys))

    def _is_only_strided(self, queries: Tensor, keys: Tensor) -> Tensor:
        return self._is_strided(queries, keys) & ~self._is_near(queries, keys) & self._is_plain(queries, keys)

    def _is_only_to_global(self, queries: Tensor, keys: Tensor) -> Tensor:
        return (queries >= self.first)[:, None] & (keys < self.first)[None, :]
