"""Segments with memory: a query attends to its own segment and to `memory` earlier ones.

Dai et al. 2019, "Transformer-XL", https://arxiv.org/abs/1901.02860, section 3.2, where the memory has no gradient; here
it has one, since the whole sequence is processed at once. The cost is n x segment x (1 + memory).
"""

from typing import Literal

from pydantic import Field
from torch import Tensor

from regardant.attention.interface import AttentionConfig, Keys, Queries, Values
from regardant.attention.masks import View
from regardant.attention.patterns import PatternAttention
from regardant.attention.tiles import LARGEST_BLOCK, PartialSoftmax, blocks


class SegmentConfig(AttentionConfig):
    """Softmax within segments of the sequence, with memory of earlier segments."""

    kind: Literal["segment"] = "segment"

    segment: int = Field(128, gt=0)
    """Length of a segment, in tokens."""

    memory: int = Field(1, ge=0)
    """Number of earlier segments that a query attends to."""

    def build(self, *, num_heads: int, head_size: int) -> "Segment":
        return Segment(self.segment, self.memory, head_size)


class Segment(PatternAttention):
    """Exact attention within blocks on the diagonal and `memory` blocks to their left."""

    def __init__(self, segment: int, memory: int, head_size: int) -> None:
        super().__init__(head_size, reach=segment * (1 + memory))
        self.segment = segment
        self.memory = memory

    def pattern(self, queries: Tensor, keys: Tensor) -> Tensor:
        behind = (queries // self.segment)[:, None] - (keys // self.segment)[None, :]
        return (behind >= 0) & (behind <= self.memory)

    def attend(self, q: Queries, k: Keys, v: Values, view: View) -> PartialSoftmax:
        length = k.shape[2]
        # A block holds whole segments if several fit, so that few masked pairs are computed.
        size = LARGEST_BLOCK // self.segment * self.segment or LARGEST_BLOCK
        tiles = [(rows, self._keys_of(rows, length, view.causal)) for rows in blocks(0, length, size)]
        return self.attend_tiles(q, k, v, view, tiles, self.pattern)

    def _keys_of(self, rows: slice, length: int, causal: bool) -> slice:
        first = max(0, (rows.start // self.segment - self.memory) * self.segment)
        last = rows.stop if causal else min(length, -(-rows.stop // self.segment) * self.segment)
        return slice(first, last)
