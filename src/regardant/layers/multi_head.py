"""Multi-head attention: projections, heads, positions and decoding state around a mechanism.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.2.2. Heads of keys and values may be fewer than
heads of queries (Ainslie et al. 2023, https://arxiv.org/abs/2305.13245).

Shape legend: B sentences, W beams, T target length, S source length, M d_model, H heads, G key heads,
D size of a query and a key, E size of a value.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.attention import Attention, AttentionConfig, View
from regardant.attention.base import move_rows
from regardant.attention.beam_keys import Ancestry, BeamKeys
from regardant.layers.linear import Linear
from regardant.layers.remembered import Remembered
from regardant.positions import Positions

Projections = Literal["separate", "query_key", "key_value", "all", "none"]

PROJECTED: dict[str, tuple[str, ...]] = {
    "separate": ("query", "key", "value"),
    "query_key": ("key", "value"),
    "key_value": ("query", "key"),
    "all": ("key",),
    "none": (),
}
"""What has a matrix of its own; queries and values without one are the keys, and keys without one the tokens."""

WITH_ONE_OF_QUERY_AND_KEY: dict[Projections, Projections] = {"separate": "query_key", "key_value": "all"}
"""What becomes of projections where the mechanism gives queries and keys one."""


@dataclass(frozen=True)
class HeadShape:
    """How d_model is cut into heads."""

    d_model: int
    num_heads: int
    num_key_heads: int
    key_size: int
    """Of a head's queries and keys."""
    value_size: int
    """Of a head's values."""


@dataclass(frozen=True)
class SelfAttentionState(Remembered):
    """Of each row by itself."""

    mechanism: Attention
    remembered: Any
    """By the mechanism."""
    length: int = 0
    """Tokens taken in."""

    def reorder(self, rows: Int[Tensor, " N2"]) -> "SelfAttentionState":
        return replace(self, remembered=self.mechanism.reorder(self.remembered, rows))


@dataclass(frozen=True)
class SharedState(Remembered):
    """Of all beams of a sentence together."""

    remembered: BeamKeys

    def reorder(self, rows: Int[Tensor, " N2"]) -> "SharedState":
        return self  # beams that change places are the ancestry's business

    def keep(self, sentences: Int[Tensor, " B2"], rows: Int[Tensor, " N2"]) -> "SharedState":
        return SharedState(self.remembered.keep(sentences))


class SelfAttention(nn.Module):
    """Every token asks the others of its own sequence.

    Raises:
        ValueError: the mechanism does not go with the order, the positions, the projections or the heads.
    """

    def __init__(
        self,
        shape: HeadShape,
        config: AttentionConfig,
        positions: Positions,
        projections: Projections = "separate",
        *,
        causal: bool,
    ) -> None:
        super().__init__()
        self.mechanism = config.build(num_heads=shape.num_heads, head_size=shape.key_size)
        self.mechanism.check(View(causal=causal))
        _check_positions(positions, self.mechanism, config.kind)
        self.positions = positions
        if self.mechanism.needs_projection and projections == "none":
            raise ValueError(f"{config.kind} weighs projected queries and keys: choose other projections than 'none'")
        if self.mechanism.shares_query_and_key:
            if shape.num_key_heads != shape.num_heads:
                raise ValueError(
                    f"{config.kind} gives queries and keys one projection, so that {shape.num_key_heads} key heads "
                    f"cannot serve {shape.num_heads} heads: leave out num_key_heads"
                )
            projections = WITH_ONE_OF_QUERY_AND_KEY.get(projections, projections)
        sizes = {
            "query": shape.num_heads * shape.key_size,
            "key": shape.num_key_heads * shape.key_size,
            "value": shape.num_key_heads * shape.value_size,
        }
        self.shape = shape
        self.parts = PROJECTED[projections]
        self.widths = [sizes[part] for part in self.parts]
        # One product for all: a CPU and a GPU alike lose on three small ones.
        projection = Linear(shape.d_model, sum(self.widths)) if self.parts else nn.Identity()
        self.query_key_value = projection
        mixed = shape.num_heads * shape.value_size
        self.output = Linear(mixed, shape.d_model) if self.parts else nn.Identity()

    def forward(self, x: Float[Tensor, "B T M"], view: View) -> Float[Tensor, "B T M"]:
        q, k, v = self._project(x)
        if self.positions.acts_on == "query_key":
            at, _ = view.positions(q, k)
            as_they_come = view.query_positions is None and view.key_positions is None
            self.positions.reach(x.shape[1] if as_they_come else int(at.max()) + 1)
            q, k = self._turn(q, k, at)
        elif self.positions.depends_on_query:
            if view.query_positions is not None or view.key_positions is not None:
                raise ValueError(f"{type(self.positions).__name__} counts tokens from 0: give the view no positions")
            view = replace(view, bias=self.positions.bias_of(q, 0))
        return self.output(_merge(self.mechanism(q, k, v, view)))

    def start(self, capacity: int, ancestry: Ancestry | None = None) -> SelfAttentionState | SharedState:
        """The state before the first of at most `capacity` tokens; with an ancestry, of beams that may share it."""
        if ancestry is not None and self.mechanism.beams_share and not self.positions.depends_on_query:
            return SharedState(BeamKeys(ancestry))
        return SelfAttentionState(self.mechanism, self.mechanism.start(capacity))

    def step(
        self, x: Float[Tensor, "N T M"], state: SelfAttentionState | SharedState, view: View
    ) -> tuple[Float[Tensor, "N T M"], SelfAttentionState | SharedState]:
        """The newest T tokens of N rows, given what `state` remembers of the earlier ones."""
        if isinstance(state, SharedState):
            mixed, keys = self._step_of_beams(x, state.remembered, view)
            return mixed, SharedState(keys)
        length = state.length + x.shape[1]
        q, k, v = self._project(x)
        if self.positions.acts_on == "query_key":
            self.positions.reach(length)
            q, k = self._turn(q, k, torch.arange(state.length, length, device=x.device))
        elif self.positions.depends_on_query:
            view = replace(view, bias=self.positions.bias_of(q, state.length))
        mixed, remembered = self.mechanism.step(q, k, v, state.remembered, view)
        return self.output(_merge(mixed)), replace(state, remembered=remembered, length=length)

    def _step_of_beams(self, x: Tensor, before: BeamKeys, view: View) -> tuple[Tensor, BeamKeys]:
        """The newest token of every beam; the beams of a sentence are as tokens of one sequence."""
        length, asking = before.length + 1, before.ancestry.asking
        q, k, v = self._project(x.view(-1, asking, x.shape[-1]))
        seen = before.ancestry.view(view, length, len(q), x.device)
        if self.positions.acts_on == "query_key":
            assert seen.query_positions is not None
            self.positions.reach(length)
            q, k = self._turn(q, k, seen.query_positions)
        after = before.append(k, v)
        return self.output(_merge(self.mechanism(q, *after.seen(), seen))).view_as(x), after

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        projected = self.query_key_value(x)
        if not self.parts:
            k = _split(projected, self.shape.key_size)
            return k, k, k
        found = dict(zip(self.parts, projected.split(self.widths, -1), strict=True))
        k = _split(found["key"], self.shape.key_size)
        q = _split(found["query"], self.shape.key_size) if "query" in found else k
        v = _split(found["value"], self.shape.value_size) if "value" in found else k
        return q, k, v

    def _turn(self, q: Tensor, k: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        return self.positions.turn(q, at), self.positions.turn(k, at)


def _check_positions(positions: Positions, mechanism: Attention, kind: str) -> None:
    """Refuse a bias that this mechanism cannot add to its scores, or scales otherwise."""
    if positions.acts_on != "scores":
        return
    name = type(positions).__name__
    if "bias" not in mechanism.honours:
        raise ValueError(
            f"{kind} has no scores for {name} positions to be added to: choose positions on the input or on queries "
            "and keys, or another mechanism"
        )
    if positions.scaled_by is not None and not math.isclose(positions.scaled_by, mechanism.scale):
        raise ValueError(
            f"{name} positions are scaled by 1 / sqrt(head size) like the products they stand with, and {kind} as it "
            f"is set scales by {mechanism.scale:g}: choose other positions, or scaled dot products of temperature 1"
        )


@dataclass(frozen=True)
class ProjectedMemory:
    """Keys and values of the source, computed once a sentence."""

    keys: Float[Tensor, "B G S D"]
    values: Float[Tensor, "B G S E"]

    def keep(self, sentences: Int[Tensor, " B2"]) -> "ProjectedMemory":
        """Go on with these sentences alone, moved within what they take: where nothing is learned."""
        move_rows(sentences, self.keys, self.values)
        return ProjectedMemory(self.keys[: len(sentences)], self.values[: len(sentences)])


class CrossAttention(nn.Module):
    """Every target token asks the source. Each layer has projections of its own on the one memory."""

    def __init__(self, shape: HeadShape, config: AttentionConfig) -> None:
        super().__init__()
        self.shape = shape
        self.mechanism = config.build(num_heads=shape.num_heads, head_size=shape.key_size)
        if self.mechanism.shares_query_and_key:
            raise ValueError(f"{config.kind} compares a sequence with itself: it cannot be a cross_attention")
        self.widths = [shape.num_key_heads * size for size in (shape.key_size, shape.value_size)]
        self.query = Linear(shape.d_model, shape.num_heads * shape.key_size)
        self.key_value = Linear(shape.d_model, sum(self.widths))
        self.output = Linear(shape.num_heads * shape.value_size, shape.d_model)

    def project(self, memory: Float[Tensor, "B S M"]) -> ProjectedMemory:
        """What the source offers: keys and values."""
        keys, values = self.key_value(memory).split(self.widths, -1)
        return ProjectedMemory(_split(keys, self.shape.key_size), _split(values, self.shape.value_size))

    def forward(self, x: Float[Tensor, "B T M"], memory: ProjectedMemory, view: View) -> Float[Tensor, "B T M"]:
        """T may be the beams of a sentence as well as its positions: a query here knows of no other query."""
        q = _split(self.query(x), self.shape.key_size)
        return self.output(_merge(self.mechanism(q, memory.keys, memory.values, view)))


def _split(x: Tensor, head_size: int) -> Tensor:
    return x.view(*x.shape[:-1], x.shape[-1] // head_size, head_size).transpose(1, 2)  # [B, T, M] to [B, H, T, D]


def _merge(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)  # [B, H, T, D] to [B, T, M]
