"""Transformer stacks: an encoder mixes all elements, a decoder attends to earlier ones and to a memory, if any.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.1.

Shape legend: B batch, W beams, N = B x W rows, T elements, S elements of the memory, M d_model, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regardant.attention import Attention, AttentionConfig, PassView, View
from regardant.attention.cache import BeamOrigin, stacked
from regardant.layers.cache import LayerCache
from regardant.layers.dense import DenseMixer
from regardant.layers.mixers import Mixer, MixerConfig, build_mixer
from regardant.layers.multi_head import CrossAttention, ProjectedMemory
from regardant.layers.residual import ResidualStream
from regardant.models.sequence import SequenceDecoder, SequenceEncoder
from regardant.models.transformer import EncoderStackConfig, TransformerConfig
from regardant.models.vectors import Vectors
from regardant.positions import PositionBias, Positions

LayerCaches = tuple[LayerCache | None, LayerCache | None]
"""Caches of a layer's self-attention and of its feed-forward network. None: nothing is kept."""


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each written to the residual stream."""

    def __init__(
        self,
        config: TransformerConfig,
        stack: EncoderStackConfig,
        positions: Positions,
        max_length: int,
        number: int = 0,
    ) -> None:
        super().__init__()
        self.self_attention = build_mixer(
            stack.self_attention.at_layer(number),
            config.heads,
            positions,
            config.projections,
            max_length=max_length,
            causal=False,
        )
        self.feed_forward = config.feed_forward.build(config.d_model, config.d_ff, config.inner_dropout, causal=False)
        self.after_self_attention = config.build_residual()
        self.after_feed_forward = config.build_residual(ends_layer=True)

    def forward(self, stream: ResidualStream, view: View) -> None:
        stream.write(self.after_self_attention, self.self_attention, view)
        stream.write(self.after_feed_forward, self.feed_forward, view)


class Encoder(SequenceEncoder):
    """Encoder layers, and the final norm that a pre-norm stream needs.

    keeps_layers=True: the outputs of all layers are returned, for a decoder whose layers each attend to their own.
    """

    layers: Sequence[EncoderLayer]

    def __init__(
        self,
        config: TransformerConfig,
        stack: EncoderStackConfig,
        positions: Positions,
        max_length: int,
        *,
        keeps_layers: bool = False,
    ) -> None:
        super().__init__()
        layers = nn.ModuleList(
            EncoderLayer(config, stack, positions, max_length, number) for number in range(stack.num_layers)
        )
        self.layers = layers  # type: ignore[assignment]  # a ModuleList does not name its element
        self.final_norm = config.build_last_norm()
        self.positions = positions
        self.position_bias, self.recomputed = positions.shared_bias(), config.recomputes
        self.open_stream = config.open_stream
        self.reversible = config.residual == "reversible"
        self.keeps_layers = keeps_layers

    @property
    def longest(self) -> int | None:
        mixers = (module for module in self.modules() if isinstance(module, Attention | DenseMixer))
        return min((one.longest for one in mixers if one.longest is not None), default=None)

    def forward(self, x: Vectors) -> Vectors:
        """Return the normalised output of the last layer; with `keeps_layers` also those of the layers before.

        Raises:
            ValueError: the bias of edges is learned, and reversible residuals have no gradient for it.
        """
        if self.reversible and self.training and x.edges is not None and x.edges.requires_grad:
            raise ValueError(
                "reversible residuals give no gradient to a learned bias of edges: set residual=add (and "
                "activation_checkpointing=true, where memory is short)"
            )
        view = PassView(
            keys=_real_keys(x),
            pairs=None if x.pairs is None else x.pairs[:, None],
            bias=self.position_bias if x.edges is None else _EdgeBias(x.edges, self.position_bias),
            recomputed=self.recomputed,
        )
        if self.keeps_layers:
            *earlier, last = self._outputs(x.values, view)
            return replace(x, values=last, layers=earlier)
        stream = self.open_stream(x.values, training=self.training)
        for layer in self.layers:
            layer(stream, view)
        return replace(x, values=self.final_norm(stream.close()))

    def _outputs(self, values: Tensor, view: View) -> list[Tensor]:
        """Return the output of each layer, normalised like that of the last."""
        outputs = []
        for layer in self.layers:
            stream = self.open_stream(values, training=self.training)
            layer(stream, view)
            values = stream.close()
            outputs.append(self.final_norm(values))
        return outputs


def _real_keys(x: Vectors) -> Bool[Tensor, "B T"] | None:
    """Return which vectors are real. None: all are, and attention needs no mask.

    Another device than a CPU would have to be waited for, and a compiled graph serves batches with padding too.
    """
    real = x.real
    if real is None or real.device.type != "cpu" or torch.compiler.is_compiling():
        return real
    return None if bool(real.all()) else real


@dataclass(frozen=True)
class _EdgeBias:
    """Edge features as a bias, added to the bias of a position scheme."""

    edges: Float[Tensor, "B #H T T"]
    positions: PositionBias | None

    def __call__(self, queries: Tensor, keys: Tensor) -> Tensor:
        bias = self.edges[:, :, queries[:, None], keys[None, :]]
        if self.positions is None:
            return bias
        added: Tensor = bias + self.positions(queries, keys).to(torch.promote_types(bias.dtype, torch.float32))
        return added


@dataclass(kw_only=True)
class DecoderState:
    """Caches of a stack between steps. Implements `models.base.DecodingState`."""

    beam_origin: BeamOrigin | None
    """Record of which beam continues which. None: there is one beam."""
    caches: list[LayerCaches]
    """Caches of each layer."""
    memory: list[ProjectedMemory] = field(default_factory=list)
    """Keys and values of each layer's cross-attention."""
    memory_view: PassView = field(default_factory=PassView)
    length: int = 0
    """Tokens so far."""

    @property
    def beam_size(self) -> int:
        """Number of beams of a sentence at the current step."""
        return 1 if self.beam_origin is None else self.beam_origin.num_beams

    def reorder(self, beams: Int[Tensor, "B W"]) -> None:
        if self.beam_origin is None:
            return
        if following := [cache for cache in self._layer_caches() if cache.follows_beams]:
            first = torch.arange(len(beams), device=beams.device)[:, None] * self.beam_size
            rows = (first + beams).flatten()
            for cache in following:
                cache.reorder(rows)
        self.beam_origin.reorder(beams)

    def keep(self, sentences: Int[Tensor, " B2"]) -> None:
        if self.beam_origin is not None:
            self.beam_origin.keep(sentences)
        beams = torch.arange(self.beam_size, device=sentences.device)
        rows = (sentences[:, None] * self.beam_size + beams).flatten()
        for cache in self._layer_caches():
            cache.keep(sentences, rows)
        self.memory = [projected.keep(sentences) for projected in self.memory]
        if self.memory_view.keys is not None:
            self.memory_view = PassView(keys=self.memory_view.keys.index_select(0, sentences))

    @property
    def joins(self) -> bool:
        """True if all caches can be joined."""
        return all(cache.joins for cache in self._layer_caches())

    def join(self, *others: "DecoderState") -> None:
        if self.beam_origin is not None:
            self.beam_origin.join(*(other.beam_origin for other in others if other.beam_origin is not None))
        for cache, *theirs in zip(self._layer_caches(), *(other._layer_caches() for other in others), strict=True):
            cache.join(*theirs)
        if self.memory:
            real = stacked([state._real() for state in (self, *others)], dim=1)
            self.memory_view = PassView(keys=None if bool(real.all()) else real)
            memories = zip(self.memory, *(other.memory for other in others), strict=True)
            self.memory = [mine.join(*theirs) for mine, *theirs in memories]

    def _real(self) -> Bool[Tensor, "B S"]:
        """Return the padding mask of the memory: True for real elements."""
        real, keys = self.memory_view.keys, self.memory[0].keys
        return keys.new_ones(len(keys), keys.shape[2], dtype=torch.bool) if real is None else real

    def _layer_caches(self) -> list[LayerCache]:
        return [cache for caches in self.caches for cache in caches if cache is not None]


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention if there is a memory, then feed-forward, each written to the residual stream."""

    def __init__(
        self,
        config: TransformerConfig,
        self_attention: MixerConfig,
        cross_attention: AttentionConfig | None,
        positions: Positions,
        max_length: int,
        *,
        causal: bool,
    ) -> None:
        super().__init__()
        self.self_attention: Mixer = build_mixer(
            self_attention, config.heads, positions, config.projections, max_length=max_length, causal=causal
        )
        self.cross_attention = None if cross_attention is None else CrossAttention(config.heads, cross_attention)
        self.feed_forward = config.feed_forward.build(config.d_model, config.d_ff, config.inner_dropout, causal=causal)
        self.after_self_attention = config.build_residual()
        if self.cross_attention is not None:
            self.after_cross_attention = config.build_residual()
        self.after_feed_forward = config.build_residual(ends_layer=True)

    def forward(
        self,
        stream: ResidualStream,
        view: View,
        memory: Float[Tensor, "B S M"] | ProjectedMemory | None,
        memory_view: View,
        caches: LayerCaches = (None, None),
    ) -> None:
        """Apply the layer to all tokens of a sequence; with caches, to the newest tokens of every row."""
        stream.write(self.after_self_attention, self.self_attention, view, caches[0])
        if self.cross_attention is not None:
            stream.write(self.after_cross_attention, self.cross_attention, memory, memory_view)
        stream.write(self.after_feed_forward, self.feed_forward, view, caches[1])


class Decoder(SequenceDecoder):
    """Decoder layers, and the final norm that a pre-norm stream needs. cross_attention=None: there is no memory.

    causal=False: elements attend to later ones too, so that the stack cannot decode step by step.
    """

    layers: Sequence[DecoderLayer]

    def __init__(
        self,
        config: TransformerConfig,
        num_layers: int,
        self_attention: MixerConfig,
        cross_attention: AttentionConfig | None,
        positions: Positions,
        max_length: int,
        *,
        causal: bool = True,
    ) -> None:
        super().__init__()
        layers = nn.ModuleList(
            DecoderLayer(config, self_attention.at_layer(number), cross_attention, positions, max_length, causal=causal)
            for number in range(num_layers)
        )
        self.causal = causal
        self.layers = layers  # type: ignore[assignment]  # a ModuleList does not name its element
        self.asks_by_position = any(
            layer.cross_attention is not None and layer.cross_attention.mechanism.reads_positions
            for layer in self.layers
        )
        self._nothing: Sequence[None] = [None] * num_layers
        self.final_norm = config.build_last_norm()
        self.positions = positions
        self.position_bias, self.recomputed = positions.shared_bias(), config.recomputes
        self.open_stream = config.open_stream

    def forward(self, x: Vectors, memory: Vectors | None = None) -> Vectors:
        """Return the vectors after the last layer, of all tokens at once.

        In a causal stack, padding of the target needs no mask: it is at the end, where no real token attends.
        """
        stream, view = self._open(x.values), self._view()
        if not self.causal:
            view = replace(view, keys=_real_keys(x))
        memories: Sequence[Tensor | None] = self._nothing
        memory_view = PassView()
        if memory is not None:
            memory_view, memories = PassView(keys=_real_keys(memory)), self._memories(memory)
        if self.asks_by_position:
            at = torch.arange(x.values.shape[1], device=x.values.device)
            memory_view = replace(memory_view, query_positions=at)
        for layer, values in zip(self.layers, memories, strict=True):
            layer(stream, view, values, memory_view)
        return replace(x, values=self.final_norm(stream.close()))

    def start(self, memory: Vectors | None, beam_size: int, max_length: int) -> DecoderState:
        """Return the state before the first of at most `max_length` tokens; the memory is projected once."""
        origin = BeamOrigin(beam_size, max_length) if beam_size > 1 else None
        caches: list[LayerCaches] = [
            (layer.self_attention.start(max_length, origin), layer.feed_forward.start()) for layer in self.layers
        ]
        if memory is None:
            return DecoderState(beam_origin=origin, caches=caches)
        projected = [
            layer.cross_attention.project(values)
            for layer, values in zip(self.layers, self._memories(memory), strict=True)
            if layer.cross_attention is not None
        ]
        view = PassView(keys=_real_keys(memory))
        return DecoderState(beam_origin=origin, caches=caches, memory=projected, memory_view=view)

    def step(self, x: Float[Tensor, "N T M"], state: DecoderState) -> Float[Tensor, "N T M"]:
        """Return the vectors of the newest tokens of every beam; `state` is changed in place."""
        stream, view, memory_view = self._open(x), self._view(), state.memory_view
        if self.asks_by_position:  # all beams are at the same position
            at = torch.full((state.beam_size,), state.length, device=x.device)
            memory_view = replace(memory_view, query_positions=at)
        memories: Sequence[ProjectedMemory | None] = state.memory or self._nothing
        for layer, caches, memory in zip(self.layers, state.caches, memories, strict=True):
            layer(stream, view, memory, memory_view, caches)
        state.length += x.shape[1]
        vectors: Tensor = self.final_norm(stream.close())
        return vectors

    def _memories(self, memory: Vectors) -> Sequence[Tensor]:
        """Return the encoder output that each layer attends to."""
        return [*memory.layers, memory.values] if memory.layers else [memory.values] * len(self.layers)

    def _open(self, x: Tensor) -> ResidualStream:
        return self.open_stream(x, training=self.training)

    def _view(self) -> PassView:
        return PassView(causal=self.causal, bias=self.position_bias, recomputed=self.recomputed)
