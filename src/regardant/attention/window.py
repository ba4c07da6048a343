"""Local attention: a query attends to the keys at most `window` tokens away.

Luong et al. 2015 and Child et al. 2019 have local attention; this form is that of Beltagy et al. 2020, "Longformer",
https://arxiv.org/abs/2004.05150, section 3.1. The cost is n x window.
"""

from typing import Literal

from pydantic import Field
from torch import Tensor

from regardant.attention.interface import AttentionConfig, Keys, Queries, Values
from regardant.attention.masks import View
from regardant.attention.patterns import PatternAttention
from regardant.attention.tiles import PartialSoftmax, near_tiles


class WindowConfig(AttentionConfig):
    """Softmax over the keys near the query. Decoding uses a rolling cache."""

    kind: Literal["window"] = "window"

    window: int = Field(256, ge=0)
    """Largest distance of keys from the query, on each side, in tokens."""

    def build(self, *, num_heads: int, head_size: int) -> "Window":
        return Window(self.window, head_size)


class Window(PatternAttention):
    """Exact attention within a band."""

    def __init__(self, window: int, head_size: int) -> None:
        super().__init__(head_size, reach=window)

    def pattern(self, queries: Tensor, keys: Tensor) -> Tensor:
        return (queries[:, None] - keys[None, :]).abs() <= self.reach

    def attend(self, q: Queries, k: Keys, v: Values, view: View) -> PartialSoftmax:
        tiles = near_tiles(k.shape[2], before=self.reach, after=0 if view.causal else self.reach)
        return self.attend_tiles(q, k, v, view, tiles, self.pattern)
