"""Attention to the keys that a fixed pattern of positions allows, without a matrix of all pairs.

Exact attention under a window mask still computes all pairs. These mechanisms compute only the pairs of the pattern.

Shape legend: as in `attention.interface`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regardant.attention.interface import Attention, Keys, Mixed, Queries, Values, Weights
from regardant.attention.masks import View, softmax_dtype
from regardant.attention.rolling import RollingKeys
from regardant.attention.softmax import masked_softmax
from regardant.attention.tiles import PartialSoftmax, Pattern, Tile, additive_mask_of, attend_tiles


class PatternAttention(Attention):
    """Softmax over the keys of a pattern. Write `pattern` and `attend`.

    Every query attends at most `reach` tokens back, and possibly to the `first` keys of the sequence. If queries and
    keys are not the same tokens in the same order, all their pairs are computed.
    """

    honours = frozenset({"causal", "keys", "bias", "query_positions", "key_positions"})
    reads_positions = True
    reads_order = True

    def __init__(self, head_size: int, *, reach: int, first: int = 0) -> None:
        super().__init__()
        self.scale = 1 / math.sqrt(head_size)
        self.reach = reach
        self.first = first

    def pattern(self, queries: Int[Tensor, " Q"], keys: Int[Tensor, " K"]) -> Bool[Tensor, "Q K"]:
        """Return the mask of pairs that may attend, from the positions of queries and keys."""
        raise NotImplementedError

    def attend(self, q: Queries, k: Keys, v: Values, view: View) -> PartialSoftmax:
        """Return the softmax over the pattern, for queries and keys that are the same tokens."""
        raise NotImplementedError

    def attend_tiles(
        self, q: Queries, k: Keys, v: Values, view: View, tiles: Sequence[Tile], pattern: Pattern
    ) -> PartialSoftmax:
        """Return the softmax over a pattern within tiles, each query in one of them."""
        at = torch.arange(k.shape[2], device=k.device)
        return attend_tiles(q, k, v, tiles, additive_mask_of(view, at, at, softmax_dtype(q), pattern), self.scale)

    def mask(self, q: Queries, k: Keys, view: View) -> Bool[Tensor, "1 1 Q K"]:
        return self.pattern(*view.positions(q, k))[None, None]

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        return (q @ k.mT).to(softmax_dtype(q)) * self.scale

    def compute_weights(self, q: Queries, k: Keys, view: View) -> Weights:
        seen = replace(view, pairs=self.mask(q, k, view))
        return masked_softmax(self.compute_scores(q, k, view), q, k, seen)

    def mix(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed:
        if q.shape[2] != k.shape[2] or view.query_positions is not None or view.key_positions is not None:
            return super().mix(q, k, v, view)
        return self.attend(q, k, v, view).mixed.to(v.dtype)

    def start(self, capacity: int) -> RollingKeys:
        return RollingKeys(self.reach, self.first)

    def step(self, q: Queries, k: Keys, v: Values, state: RollingKeys, view: View) -> tuple[Mixed, Any]:
        self.check_step(view)
        state = state.append(k, v)
        assert state.keys is not None and state.values is not None
        # The first step reads whole sequences, for which `mix` computes tiles if the view gives no positions.
        seen = view if state.length == q.shape[2] else state.view(view, q.shape[2])
        return self(q, state.keys, state.values, seen), state.forget()
