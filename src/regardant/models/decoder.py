"""A Transformer stack that writes: causal self-attention, cross-attention to a memory where there is one, feed-forward.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.1.

Shape legend: B sentences, W beams of a sentence, N = B x W rows, T target length, S source length, M d_model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.attention import AttentionConfig, View
from regardant.attention.beam_keys import Ancestry
from regardant.layers.feed_forward import ConvolutionalFeedForward, FeedForward, build_feed_forward
from regardant.layers.mixers import Mixer, MixerConfig, build_mixer
from regardant.layers.multi_head import CrossAttention, ProjectedMemory
from regardant.layers.remembered import Remembered
from regardant.layers.residual import Stream
from regardant.models.sequence import SequenceDecoder
from regardant.models.transformer import TransformerConfig
from regardant.models.vectors import Vectors
from regardant.positions import Positions


@dataclass
class LayerState:
    """The memory of a layer between steps."""

    mixed: Remembered
    """Of its self-attention, or what stands in its place."""
    widened: Tensor | None = None
    """Of its feed-forward network, where that reads neighbours. [N, K, M]"""

    def attend(self, mixer: Mixer, h: Float[Tensor, "N T M"], view: View) -> Float[Tensor, "N T M"]:
        """Attend from the newest tokens to all so far."""
        mixed, self.mixed = mixer.step(h, self.mixed, view)
        return mixed

    def feed(
        self, network: FeedForward | ConvolutionalFeedForward, h: Float[Tensor, "N T M"]
    ) -> Float[Tensor, "N T M"]:
        """Feed the newest tokens forward."""
        fed, self.widened = network.step(h, self.widened)
        return fed

    def reorder(self, rows: Int[Tensor, " N2"]) -> None:
        """Let row i continue what was row `rows[i]`."""
        self.mixed = self.mixed.reorder(rows)
        self.widened = None if self.widened is None else self.widened[rows]

    def keep(self, sentences: Int[Tensor, " B2"], rows: Int[Tensor, " N2"]) -> None:
        """Go on with these sentences alone, whose beams are these rows."""
        self.mixed = self.mixed.keep(sentences, rows)
        self.widened = None if self.widened is None else self.widened[rows]


@dataclass(kw_only=True)
class DecoderState:
    """The memory of a stack between steps. Implements `models.base.DecodingState`."""

    ancestry: Ancestry | None
    """Of the beams, where there are several."""
    own: list[LayerState]
    """Of each layer."""
    memory: list[ProjectedMemory] = field(default_factory=list)
    """Keys and values of each layer's cross-attention."""
    memory_view: View = field(default_factory=View)
    length: int = 0
    """Tokens taken in."""

    @property
    def beam_size(self) -> int:
        """Beams of a sentence, so far."""
        return 1 if self.ancestry is None else self.ancestry.asking

    def reorder(self, beams: Int[Tensor, "B W"]) -> None:
        if self.ancestry is not None:
            first = torch.arange(len(beams), device=beams.device)[:, None] * self.beam_size
            rows = (first + beams).flatten()
            self.ancestry.reorder(beams)
            for state in self.own:
                state.reorder(rows)

    def keep(self, sentences: Int[Tensor, " B2"]) -> None:
        if self.ancestry is not None:
            self.ancestry.keep(sentences)
        beams = torch.arange(self.beam_size, device=sentences.device)
        rows = (sentences[:, None] * self.beam_size + beams).flatten()
        for state in self.own:
            state.keep(sentences, rows)
        self.memory = [projected.keep(sentences) for projected in self.memory]
        if self.memory_view.keys is not None:
            self.memory_view = View(keys=self.memory_view.keys.index_select(0, sentences))


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention if there is a memory, then feed-forward, each written to the residual stream."""

    def __init__(
        self,
        config: TransformerConfig,
        self_attention: MixerConfig,
        cross_attention: AttentionConfig | None,
        positions: Positions,
        max_length: int,
    ) -> None:
        super().__init__()
        self.self_attention: Mixer = build_mixer(
            self_attention, config.heads, positions, config.projections, max_length=max_length, causal=True
        )
        self.cross_attention = None if cross_attention is None else CrossAttention(config.heads, cross_attention)
        self.feed_forward = build_feed_forward(
            config.feed_forward, config.d_model, config.d_ff, config.inner_dropout, causal=True
        )
        self.after_self_attention = config.build_residual()
        if self.cross_attention is not None:
            self.after_cross_attention = config.build_residual()
        self.after_feed_forward = config.build_residual()

    def forward(self, stream: Stream, view: View, memory: Tensor | None, memory_view: View) -> None:
        """Write all tokens; memory is [B, S, M]."""
        stream.write(self.after_self_attention, lambda h: self.self_attention(h, view))
        if (attention := self.cross_attention) is not None:
            assert memory is not None
            stream.write(
                self.after_cross_attention, lambda h, m: attention(h, attention.project(m), memory_view), memory
            )
        stream.write(self.after_feed_forward, self.feed_forward)

    def step(
        self, stream: Stream, state: LayerState, view: View, memory: ProjectedMemory | None, memory_view: View
    ) -> None:
        """Write the newest tokens of every beam; `state` is changed in place."""
        stream.write(self.after_self_attention, lambda h: state.attend(self.self_attention, h, view))
        if self.cross_attention is not None:
            assert memory is not None
            stream.write(self.after_cross_attention, lambda h: self._attend_together(h, memory, memory_view))
        stream.write(self.after_feed_forward, lambda h: state.feed(self.feed_forward, h))

    def _attend_together(
        self, h: Float[Tensor, "N 1 M"], memory: ProjectedMemory, view: View
    ) -> Float[Tensor, "N 1 M"]:
        """The beams of a sentence are queries on one memory, so that nothing of it is copied for them."""
        assert self.cross_attention is not None
        beams = h.view(len(memory.keys), -1, h.shape[-1])
        return self.cross_attention(beams, memory, view).view_as(h)


class Decoder(SequenceDecoder):
    """The layers, and the last norm that a pre-norm stream needs. cross_attention=None: there is no memory."""

    layers: Sequence[DecoderLayer]

    def __init__(
        self,
        config: TransformerConfig,
        num_layers: int,
        self_attention: MixerConfig,
        cross_attention: AttentionConfig | None,
        positions: Positions,
        max_length: int,
    ) -> None:
        super().__init__()
        layers = nn.ModuleList(
            DecoderLayer(config, self_attention, cross_attention, positions, max_length) for _ in range(num_layers)
        )
        self.layers = layers  # type: ignore[assignment]  # a ModuleList does not name its element
        self.asks_by_position = any(
            layer.cross_attention is not None and layer.cross_attention.mechanism.reads_positions
            for layer in self.layers
        )
        self._nothing: Sequence[None] = [None] * num_layers
        self.final_norm = config.build_last_norm()
        self.positions = positions
        self.config = config

    def forward(self, x: Vectors, memory: Vectors | None = None) -> Vectors:
        """Return the vectors after the last layer, of all tokens at once.

        Padding of the target stands at the end, where no real token attends: it is not masked.
        """
        stream, view = self._open(x.values), self._view()
        memories: Sequence[Tensor | None] = self._nothing
        memory_view = View()
        if memory is not None:
            memory_view, memories = View(keys=memory.real), memory.memories(len(self.layers))
        if self.asks_by_position:
            at = torch.arange(x.values.shape[1], device=x.values.device)
            memory_view = replace(memory_view, query_positions=at)
        for layer, values in zip(self.layers, memories, strict=True):
            layer(stream, view, values, memory_view)
        return x.with_values(self.final_norm(stream.close()))

    def start(self, memory: Vectors | None, beam_size: int, max_length: int) -> DecoderState:
        """Return the state before the first of at most `max_length` tokens; the memory is projected once."""
        ancestry = Ancestry(beam_size, max_length) if beam_size > 1 else None
        own = [LayerState(layer.self_attention.start(max_length, ancestry)) for layer in self.layers]
        if memory is None:
            return DecoderState(ancestry=ancestry, own=own)
        projected = [
            layer.cross_attention.project(values)
            for layer, values in zip(self.layers, memory.memories(len(self.layers)), strict=True)
            if layer.cross_attention is not None
        ]
        return DecoderState(ancestry=ancestry, own=own, memory=projected, memory_view=View(keys=memory.real))

    def step(self, x: Float[Tensor, "N T M"], state: DecoderState) -> Float[Tensor, "N T M"]:
        """Return the vectors of the newest tokens of every beam; `state` is changed in place."""
        stream, view, memory_view = self._open(x), self._view(), state.memory_view
        if self.asks_by_position:  # all beams stand at the same one
            at = torch.full((state.beam_size,), state.length, device=x.device)
            memory_view = replace(memory_view, query_positions=at)
        memories: Sequence[ProjectedMemory | None] = state.memory or self._nothing
        for layer, own, memory in zip(self.layers, state.own, memories, strict=True):
            layer.step(stream, own, view, memory, memory_view)
        state.length += x.shape[1]
        vectors: Tensor = self.final_norm(stream.close())
        return vectors

    def _open(self, x: Tensor) -> Stream:
        return self.config.open_stream(x, training=self.training)

    def _view(self) -> View:
        return View(causal=True, bias=self.positions.shared_bias(), recomputed=self.config.recomputes)
