"""A stack that writes: causal self-attention, cross-attention on a memory, feed-forward.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.1.

Shape legend: B sentences, W beams of a sentence, N = B x W rows, T target length, S source length, M d_model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.attention import View
from regardant.attention.beam_keys import Ancestry
from regardant.layers.feed_forward import ConvolutionalFeedForward, FeedForward, build_feed_forward
from regardant.layers.mixers import Mixer, build_mixer
from regardant.layers.multi_head import CrossAttention, ProjectedMemory
from regardant.layers.remembered import Remembered
from regardant.layers.residual import Stream
from regardant.models.base import Vectors
from regardant.models.config import EncoderDecoderConfig
from regardant.models.encoder import build_residual, last_norm, open_stack
from regardant.positions import Positions


@dataclass
class LayerState:
    """What a layer remembers of what was written so far."""

    mixed: Remembered
    """By its self-attention, or what stands in its place."""
    widened: Tensor | None = None
    """By its feed-forward network, where that reads neighbours. [N, K, M]"""

    def attend(self, mixer: Mixer, h: Float[Tensor, "N T M"], view: View) -> Float[Tensor, "N T M"]:
        """Take the newest tokens in, and look at all."""
        mixed, self.mixed = mixer.step(h, self.mixed, view)
        return mixed

    def feed(
        self, network: FeedForward | ConvolutionalFeedForward, h: Float[Tensor, "N T M"]
    ) -> Float[Tensor, "N T M"]:
        """Take the newest tokens in, and say what becomes of them."""
        fed, self.widened = network.step(h, self.widened)
        return fed

    def reorder(self, rows: Int[Tensor, " N2"]) -> None:
        """Row i continues what was row `rows[i]`."""
        self.mixed = self.mixed.reorder(rows)
        self.widened = None if self.widened is None else self.widened[rows]

    def keep(self, sentences: Int[Tensor, " B2"], rows: Int[Tensor, " N2"]) -> None:
        """Go on with these sentences alone, whose beams are those rows."""
        self.mixed = self.mixed.keep(sentences, rows)
        self.widened = None if self.widened is None else self.widened[rows]


@dataclass(kw_only=True)
class StackState:
    """What a stack remembers between steps: implements `models.base.DecodingState`."""

    ancestry: Ancestry | None
    """Of the beams, where there are several."""
    own: list[LayerState]
    """Of each layer on what was written so far."""
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


def begin(mixers: Iterable[Mixer], beam_size: int, max_length: int) -> tuple[Ancestry | None, list[LayerState]]:
    """What the layers of a stack remember before the first of at most `max_length` tokens."""
    ancestry = Ancestry(beam_size, max_length) if beam_size > 1 else None
    return ancestry, [LayerState(mixer.start(max_length, ancestry)) for mixer in mixers]


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention, then feed-forward, each written to the residual stream."""

    def __init__(self, config: EncoderDecoderConfig, positions: Positions) -> None:
        super().__init__()
        self.self_attention = build_mixer(
            config.decoder.self_attention,
            config.heads,
            positions,
            config.projections,
            max_length=config.max_length,
            causal=True,
        )
        self.cross_attention = CrossAttention(config.heads, config.decoder.cross_attention)
        self.feed_forward = build_feed_forward(
            config.feed_forward, config.d_model, config.d_ff, config.inner_dropout, causal=True
        )
        self.after_self_attention = build_residual(config)
        self.after_cross_attention = build_residual(config)
        self.after_feed_forward = build_residual(config)

    def forward(self, stream: Stream, view: View, memory: Float[Tensor, "B S M"], memory_view: View) -> None:
        attention = self.cross_attention
        stream.write(self.after_self_attention, lambda h: self.self_attention(h, view))
        stream.write(self.after_cross_attention, lambda h, m: attention(h, attention.project(m), memory_view), memory)
        stream.write(self.after_feed_forward, self.feed_forward)

    def step(self, stream: Stream, state: LayerState, view: View, memory: ProjectedMemory, memory_view: View) -> None:
        """One token more of every beam; `state` is changed in place."""
        stream.write(self.after_self_attention, lambda h: state.attend(self.self_attention, h, view))
        stream.write(self.after_cross_attention, lambda h: self._attend_together(h, memory, memory_view))
        stream.write(self.after_feed_forward, lambda h: state.feed(self.feed_forward, h))

    def _attend_together(
        self, h: Float[Tensor, "N 1 M"], memory: ProjectedMemory, view: View
    ) -> Float[Tensor, "N 1 M"]:
        """The beams of a sentence are queries on one memory, so that nothing of it is copied for them."""
        beams = h.view(len(memory.keys), -1, h.shape[-1])
        return self.cross_attention(beams, memory, view).view_as(h)


@dataclass(kw_only=True)
class DecoderState(StackState):
    """And of the memory that it looks at."""

    memory: list[ProjectedMemory]
    """Of each layer's cross-attention."""
    memory_view: View

    def keep(self, sentences: Int[Tensor, " B2"]) -> None:
        super().keep(sentences)
        self.memory = [projected.keep(sentences) for projected in self.memory]
        if self.memory_view.keys is not None:
            self.memory_view = View(keys=self.memory_view.keys.index_select(0, sentences))


class Decoder(nn.Module):
    """The layers, and the last norm that a pre-norm stream needs."""

    layers: Sequence[DecoderLayer]

    def __init__(self, config: EncoderDecoderConfig, positions: Positions) -> None:
        super().__init__()
        layers = nn.ModuleList(DecoderLayer(config, positions) for _ in range(config.decoder.num_layers))
        self.layers = layers  # type: ignore[assignment]  # a ModuleList does not name its element
        self.asks_by_position = any(layer.cross_attention.mechanism.reads_positions for layer in self.layers)
        self.final_norm = last_norm(config)
        self.positions = positions
        self.config = config

    def forward(self, x: Float[Tensor, "B T M"], memory: Vectors) -> Float[Tensor, "B T M"]:
        """All positions at once; padding stands at the end, where no real position looks."""
        stream, view, memory_view = self._open(x), self._view(), View(keys=memory.real)
        if self.asks_by_position:
            memory_view = replace(memory_view, query_positions=torch.arange(x.shape[1], device=x.device))
        for layer, values in zip(self.layers, memory.of_layers(len(self.layers)), strict=True):
            layer(stream, view, values, memory_view)
        return self.final_norm(stream.close())

    def start(self, memory: Vectors, beam_size: int, max_length: int) -> DecoderState:
        """Project the memory once; begin every layer's own state."""
        of_layers = zip(self.layers, memory.of_layers(len(self.layers)), strict=True)
        projected = [layer.cross_attention.project(values) for layer, values in of_layers]
        ancestry, own = begin((layer.self_attention for layer in self.layers), beam_size, max_length)
        return DecoderState(ancestry=ancestry, own=own, memory=projected, memory_view=View(keys=memory.real))

    def step(self, x: Float[Tensor, "N 1 M"], state: DecoderState) -> Float[Tensor, "N 1 M"]:
        """The newest token of every beam; `state` is changed in place."""
        stream, view, memory_view = self._open(x), self._view(), state.memory_view
        if self.asks_by_position:  # all beams stand at the same one
            at = torch.full((state.beam_size,), state.length, device=x.device)
            memory_view = replace(memory_view, query_positions=at)
        for layer, own, memory in zip(self.layers, state.own, state.memory, strict=True):
            layer.step(stream, own, view, memory, memory_view)
        state.length += 1
        return self.final_norm(stream.close())

    def _open(self, x: Tensor) -> Stream:
        return open_stack(self.config, x, training=self.training)

    def _view(self) -> View:
        return View(causal=True, bias=self.positions.shared_bias(), recomputed=self.config.recomputes)
