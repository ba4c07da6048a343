"""Multi-head attention: projections, heads, positions and decoding state around a mechanism.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.2.2. Heads of keys and values may be fewer than
heads of queries (Ainslie et al. 2023, https://arxiv.org/abs/2305.13245).

Shape legend: B sentences, W beams, T target length, S source length, M d_model, H heads, G key heads, D head size.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.attention import Attention, AttentionConfig, View
from regardant.layers.places import AttentionPlace
from regardant.positions import Positions


@dataclass(frozen=True)
class HeadShape:
    """How d_model is cut into heads."""

    d_model: int
    num_heads: int
    num_key_heads: int

    @property
    def head_size(self) -> int:
        return self.d_model // self.num_heads

    @property
    def key_size(self) -> int:
        """Width of all keys, and of all values."""
        return self.num_key_heads * self.head_size


@dataclass(frozen=True)
class SelfAttentionState:
    """What a layer remembers between decoding steps."""

    mechanism: Attention
    remembered: Any
    """By the mechanism."""
    length: int = 0
    """Tokens taken in."""

    def reorder(self, rows: Int[Tensor, " N2"]) -> "SelfAttentionState":
        """Row i of the result is what was row `rows[i]`."""
        return replace(self, remembered=self.mechanism.reorder(self.remembered, rows))


class SelfAttention(nn.Module):
    """Every token asks the others of its own sequence."""

    def __init__(self, shape: HeadShape, config: AttentionConfig, positions: Positions) -> None:
        super().__init__()
        self.shape = shape
        self.mechanism = config.build(num_heads=shape.num_heads, head_size=shape.head_size)
        self.positions = positions
        width_of_query = 0 if self.mechanism.shares_query_and_key else shape.d_model
        # One product for all three: a CPU and a GPU alike lose on three small ones.
        self.query_key_value = nn.Linear(shape.d_model, width_of_query + 2 * shape.key_size)
        self.output = nn.Linear(shape.d_model, shape.d_model)
        self.place = AttentionPlace(self.mechanism)

    def forward(self, x: Float[Tensor, "B T M"], view: View) -> Float[Tensor, "B T M"]:
        q, k, v = self._project(x)
        if self.positions.acts_on == "query_key":
            q, k = self._turn(q, k, view.positions(q, k)[0])
        self.place(q, k, view)
        return self.output(_merge(self.mechanism(q, k, v, view)))

    def start(self, capacity: int) -> SelfAttentionState:
        """The state before the first of at most `capacity` tokens."""
        return SelfAttentionState(self.mechanism, self.mechanism.start(capacity))

    def step(
        self, x: Float[Tensor, "N T M"], state: SelfAttentionState, view: View
    ) -> tuple[Float[Tensor, "N T M"], SelfAttentionState]:
        """The newest T tokens of N rows, given what `state` remembers of the earlier ones."""
        length = state.length + x.shape[1]
        q, k, v = self._project(x)
        if self.positions.acts_on == "query_key":
            q, k = self._turn(q, k, torch.arange(state.length, length, device=x.device))
        mixed, remembered = self.mechanism.step(q, k, v, state.remembered, view)
        return self.output(_merge(mixed)), replace(state, remembered=remembered, length=length)

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shape = self.shape
        projected = self.query_key_value(x).unflatten(-1, (-1, shape.head_size)).transpose(1, 2)  # [B, heads, T, D]
        k, v = (
            projected[:, -2 * shape.num_key_heads : -shape.num_key_heads],
            projected[:, -shape.num_key_heads :],
        )
        q = k if self.mechanism.shares_query_and_key else projected[:, : shape.num_heads]
        return q, k, v

    def _turn(self, q: Tensor, k: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        return self.positions.turn(q, at), self.positions.turn(k, at)


@dataclass(frozen=True)
class ProjectedMemory:
    """Keys and values of the source, computed once a sentence."""

    keys: Float[Tensor, "B G S D"]
    values: Float[Tensor, "B G S D"]

    def keep(self, sentences: Int[Tensor, " B2"]) -> "ProjectedMemory":
        return ProjectedMemory(self.keys[sentences], self.values[sentences])


class CrossAttention(nn.Module):
    """Every target token asks the source. Each layer has projections of its own on the one memory."""

    def __init__(self, shape: HeadShape, config: AttentionConfig) -> None:
        super().__init__()
        self.shape = shape
        self.mechanism = config.build(num_heads=shape.num_heads, head_size=shape.head_size)
        self.query = nn.Linear(shape.d_model, shape.d_model)
        self.key_value = nn.Linear(shape.d_model, 2 * shape.key_size)
        self.output = nn.Linear(shape.d_model, shape.d_model)
        self.place = AttentionPlace(self.mechanism)

    def project(self, memory: Float[Tensor, "B S M"]) -> ProjectedMemory:
        """What the source offers: keys and values."""
        both = self.key_value(memory).unflatten(-1, (-1, self.shape.head_size)).transpose(1, 2)
        keys, values = both.split(self.shape.num_key_heads, dim=1)
        return ProjectedMemory(keys, values)

    def forward(self, x: Float[Tensor, "B T M"], memory: ProjectedMemory, view: View) -> Float[Tensor, "B T M"]:
        """T may be the beams of a sentence as well as its positions: a query here knows of no other query."""
        q = _split(self.query(x), self.shape.head_size)
        self.place(q, memory.keys, view)
        return self.output(_merge(self.mechanism(q, memory.keys, memory.values, view)))


def _split(x: Tensor, head_size: int) -> Tensor:
    return x.unflatten(-1, (-1, head_size)).transpose(1, 2)  # [B, T, M] to [B, H, T, D]


def _merge(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)  # [B, H, T, D] to [B, T, M]
