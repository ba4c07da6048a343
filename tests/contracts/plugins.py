"""A mechanism, a position scheme and a model as a user adds them: in a module of one's own, the package untouched.

Shape legend: as in `regardant.attention.interface`; T positions.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from regardant.attention import Attention, AttentionConfig
from regardant.attention.interface import expand_heads
from regardant.attention.masks import softmax_dtype
from regardant.attention.softmax import masked_softmax
from regardant.positions import Positions, PositionsConfig


class MeanConfig(AttentionConfig):
    """The mean of what may be seen."""

    kind: Literal["mean"] = "mean"

    def build(self, *, num_heads: int, head_size: int) -> "Mean":
        return Mean()


class Seen(NamedTuple):
    """All that a mean remembers of the values so far."""

    total: Tensor
    """[N, H, E]"""
    count: int


class Mean(Attention):
    """All keys alike; decodes with a running sum."""

    honours = frozenset({"causal", "keys", "pairs"})

    def compute_weights(self, q, k, view):
        return masked_softmax(q.new_zeros(*q.shape[:3], k.shape[2], dtype=softmax_dtype(q)), q, k, view)

    def start(self, capacity):
        return None

    def step(self, q, k, v, state, view):
        self.check_step(view)
        v = expand_heads(v, q.shape[1])
        total = v.cumsum(2) if state is None else state.total[:, :, None] + v.cumsum(2)
        before = 0 if state is None else state.count
        counts = torch.arange(before + 1, before + 1 + v.shape[2], device=v.device)[:, None]
        return total / counts, Seen(total[:, :, -1], before + v.shape[2])

    def reorder(self, state, rows):
        return None if state is None else Seen(state.total[rows], state.count)


class RampConfig(PositionsConfig):
    """A straight line in place of waves."""

    kind: Literal["ramp"] = "ramp"

    def build(self, *, d_model, num_heads, head_size, max_length, causal):
        return Ramp(d_model)


class Ramp(Positions):
    """The position times a fixed vector."""

    acts_on = "input"

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.register_buffer("slope", torch.linspace(-1, 1, d_model), persistent=False)

    def embed(self, positions):
        return positions[:, None] * self.slope
