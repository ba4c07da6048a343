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
from regardant.attention.cache import AppendedKeys, BeamOrigin, SharedBeamCache, move_rows, stacked
from regardant.layers.cache import LayerCache
from regardant.layers.dropout import Dropout
from regardant.layers.linear import Linear
from regardant.positions import Positions

Projections = Literal["separate", "query_key", "key_value", "all", "none"]

PROJECTED: dict[str, tuple[str, ...]] = {
    "separate": ("query", "key", "value"),
    "query_key": ("key", "value"),
    "key_value": ("query", "key"),
    "all": ("key",),
    "none": (),
}
"""Parts with a matrix of their own. Queries and values without one are the keys, and keys without one the tokens."""

SHARED_QUERY_KEY_PROJECTIONS: dict[Projections, Projections] = {"separate": "query_key", "key_value": "all"}
"""Projections of a mechanism that shares one between queries and keys, by the configured projections."""


@dataclass(frozen=True)
class HeadShape:
    """Heads that d_model is split into: sizes, projections and dropout."""

    d_model: int
    num_heads: int
    num_key_heads: int
    key_size: int
    """Size of a head's queries and keys."""
    value_size: int
    """Size of a head's values."""
    bias: bool = True
    """True if projections have biases."""
    output: bool = True
    """True if a matrix mixes the heads of a self-attention."""
    dropout: float = 0.0
    """Dropout rate of attention weights."""

    def build(self, config: AttentionConfig) -> Attention:
        """Return the mechanism of these heads."""
        mechanism = config.build(num_heads=self.num_heads, head_size=self.key_size)
        if self.dropout:
            mechanism.drop = Dropout(self.dropout)
        return mechanism


@dataclass
class SelfAttentionCache(LayerCache):
    """Cache of a mechanism's decoding state, with a row per beam."""

    mechanism: Attention
    state: Any
    """State of the mechanism, or all keys and values if it `decodes_with_all_keys`."""
    length: int = 0
    """Number of tokens so far."""

    def open(self, x: Tensor, view: View) -> tuple[Tensor, View]:
        """Return the newest tokens in the shape of queries, and their view."""
        return x, view

    def attend(self, q: Tensor, k: Tensor, v: Tensor, view: View) -> Tensor:
        """Append the newest keys and values; return the values mixed over all keys."""
        self.length += q.shape[2]
        mechanism = self.mechanism
        if mechanism.decodes_with_all_keys:
            mixed, self.state = Attention.step(mechanism, q, k, v, self.state, view)
        else:
            mixed, self.state = mechanism.step(q, k, v, self.state, view)
        return mixed

    def reorder(self, rows: Int[Tensor, " N2"]) -> None:
        appended = self.mechanism.decodes_with_all_keys
        self.state = self.state.reorder(rows) if appended else self.mechanism.reorder(self.state, rows)

    @property
    def joins(self) -> bool:
        return isinstance(self.state, AppendedKeys)

    def join(self, *others: "SelfAttentionCache") -> None:
        self.state = self.state.join(*(other.state for other in others))


@dataclass
class SharedBeamLayerCache(LayerCache):
    """Cache of keys and values that all beams of a sentence share."""

    follows_beams = False

    mechanism: Attention
    shared: SharedBeamCache

    @property
    def length(self) -> int:
        """Number of tokens so far."""
        return self.shared.length

    def open(self, x: Float[Tensor, "N 1 M"], view: View) -> tuple[Float[Tensor, "B A M"], View]:
        """Return the newest token of every beam: the beams of a sentence are like tokens of one sequence."""
        origin = self.shared.origin
        x = x.view(-1, origin.num_beams, x.shape[-1])
        return x, origin.view(view, self.shared.length + 1, len(x), x.device)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, view: View) -> Tensor:
        """Append the newest keys and values; return the values mixed over the keys of all beams."""
        self.shared = self.shared.append(k, v)
        mixed: Tensor = self.mechanism(q, *self.shared.filled(), view)
        return mixed

    def reorder(self, rows: Int[Tensor, " N2"]) -> None:
        pass  # keys stay where they are: the stack's BeamOrigin records which beam continues which

    def keep(self, sentences: Int[Tensor, " B2"], rows: Int[Tensor, " N2"]) -> None:
        self.shared = self.shared.keep(sentences)

    @property
    def joins(self) -> bool:
        return True

    def join(self, *others: "SharedBeamLayerCache") -> None:
        self.shared = self.shared.join(*(other.shared for other in others))


class SelfAttention(nn.Module):
    """Attention from every token to the tokens of its own sequence.

    Raises:
        ValueError: the mechanism cannot use the order, the positions, the projections or the heads.
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
        self.mechanism = shape.build(config)
        self.mechanism.check(View(causal=causal))
        _check_positions(positions, self.mechanism, config.kind)
        self.positions = positions
        if self.mechanism.needs_projection and projections == "none":
            raise ValueError(f"{config.kind} needs projected queries and keys: choose other projections than 'none'")
        if self.mechanism.shares_query_and_key:
            if shape.num_key_heads != shape.num_heads:
                raise ValueError(
                    f"{config.kind} gives queries and keys one projection, so that {shape.num_key_heads} key heads "
                    f"cannot serve {shape.num_heads} heads: leave out num_key_heads"
                )
            projections = SHARED_QUERY_KEY_PROJECTIONS.get(projections, projections)
        sizes = {
            "query": shape.num_heads * shape.key_size,
            "key": shape.num_key_heads * shape.key_size,
            "value": shape.num_key_heads * shape.value_size,
        }
        self.shape = shape
        self.parts = PROJECTED[projections]
        self.widths = [sizes[part] for part in self.parts]
        # One product for all: three small ones are slower on a CPU and on a GPU.
        projection = Linear(shape.d_model, sum(self.widths), shape.bias) if self.parts else nn.Identity()
        self.query_key_value = projection
        mixed = shape.num_heads * shape.value_size
        mixes = self.parts and shape.output
        self.output = Linear(mixed, shape.d_model, shape.bias) if mixes else nn.Identity()

    def forward(
        self, x: Float[Tensor, "N T M"], view: View, cache: SelfAttentionCache | SharedBeamLayerCache | None = None
    ) -> Float[Tensor, "N T M"]:
        """Attend among all tokens of a sequence; with a cache, from the newest tokens of every row to all so far.

        The cache is updated in place.
        """
        tokens, first = x, 0
        if cache is not None:
            first = cache.length
            tokens, view = cache.open(x, view)
        q, k, v = self._project(tokens)
        if self.positions.acts_on == "query_key":
            at = self._positions_of(q, k, view) if cache is None else view.query_positions
            if at is None:
                at = torch.arange(first, first + q.shape[2], device=x.device)
            q, k = self.positions.turn(q, at), self.positions.turn(k, at)
        elif self.positions.depends_on_query:
            if view.query_positions is not None or view.key_positions is not None:
                raise ValueError(f"{type(self.positions).__name__} counts tokens from 0: give the view no positions")
            view = replace(view, bias=self.positions.bias_of(q, first))
        mixed = self.mechanism(q, k, v, view) if cache is None else cache.attend(q, k, v, view)
        return self.output(_merge(mixed)).view_as(x)

    def start(self, capacity: int, beam_origin: BeamOrigin | None = None) -> SelfAttentionCache | SharedBeamLayerCache:
        """Return an empty cache for at most `capacity` tokens; beams of a `beam_origin` may share it."""
        mechanism = self.mechanism
        if self.positions.acts_on == "query_key":
            self._reach(capacity)
        if mechanism.decodes_with_all_keys:
            return SelfAttentionCache(mechanism, AppendedKeys(capacity))
        if beam_origin is not None and mechanism.shared_beam_cache and not self.positions.depends_on_query:
            return SharedBeamLayerCache(mechanism, SharedBeamCache(beam_origin))
        return SelfAttentionCache(mechanism, mechanism.start(capacity))

    def _positions_of(self, q: Tensor, k: Tensor, view: View) -> Tensor | None:
        """Return the positions of all tokens, and prepare rotations for them. None: 0, 1, 2 ..."""
        if view.query_positions is None and view.key_positions is None:
            self._reach(q.shape[2])
            return None
        at, _ = view.positions(q, k)
        self._reach(int(at.max()) + 1)
        return at

    def _reach(self, length: int) -> None:
        if length > self.positions.ready:
            self.positions.reach(length)

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


def _check_positions(positions: Positions, mechanism: Attention, kind: str) -> None:
    """Raise ValueError for a bias that this mechanism cannot add to its scores, or scales differently."""
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
    """Keys and values of the source, computed once for each sentence."""

    keys: Float[Tensor, "B G S D"]
    values: Float[Tensor, "B G S E"]

    def keep(self, sentences: Int[Tensor, " B2"]) -> "ProjectedMemory":
        """Return the memory of these sentences alone, moved in place: not for training."""
        move_rows(sentences, self.keys, self.values)
        return ProjectedMemory(self.keys[: len(sentences)], self.values[: len(sentences)])

    def join(self, *others: "ProjectedMemory") -> "ProjectedMemory":
        """Return the keys and values of these sentences and of others, copied, with zeros after shorter sources."""
        memories = [self, *others]
        keys, values = [one.keys for one in memories], [one.values for one in memories]
        return ProjectedMemory(stacked(keys, dim=2), stacked(values, dim=2))


class CrossAttention(nn.Module):
    """Attention from every target token to the source. Each layer has its own projections of the one memory."""

    def __init__(self, shape: HeadShape, config: AttentionConfig) -> None:
        super().__init__()
        self.shape = shape
        self.mechanism = shape.build(config)
        if self.mechanism.shares_query_and_key:
            raise ValueError(f"{config.kind} compares a sequence with itself: it cannot be a cross_attention")
        self.widths = [shape.num_key_heads * size for size in (shape.key_size, shape.value_size)]
        self.query = Linear(shape.d_model, shape.num_heads * shape.key_size, shape.bias)
        self.key_value = Linear(shape.d_model, sum(self.widths), shape.bias)
        self.output = Linear(shape.num_heads * shape.value_size, shape.d_model, shape.bias)

    def project(self, memory: Float[Tensor, "B S M"]) -> ProjectedMemory:
        """Return the keys and values of the source."""
        keys, values = self.key_value(memory).split(self.widths, -1)
        return ProjectedMemory(_split(keys, self.shape.key_size), _split(values, self.shape.value_size))

    def forward(
        self, x: Float[Tensor, "N T M"], memory: Float[Tensor, "B S M"] | ProjectedMemory, view: View
    ) -> Float[Tensor, "N T M"]:
        """Attend from all tokens of B sentences to the memory, or from the newest token of N beams.

        The beams of a sentence are queries of one memory, which is not copied for each beam: no query depends on
        another.
        """
        if isinstance(memory, Tensor):
            memory = self.project(memory)
        q = _split(self.query(x.view(memory.keys.shape[0], -1, x.shape[-1])), self.shape.key_size)
        return self.output(_merge(self.mechanism(q, memory.keys, memory.values, view))).view_as(x)


def _split(x: Tensor, head_size: int) -> Tensor:
    return x.view(*x.shape[:-1], x.shape[-1] // head_size, head_size).transpose(1, 2)  # [B, T, M] to [B, H, T, D]


def _merge(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)  # [B, H, T, D] to [B, T, M]
