"""A stack that writes: causal self-attention, cross-attention on a memory, feed-forward.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.1.

Shape legend: B sentences, W beams of a sentence, N = B x W rows, T target length, S source length, M d_model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.attention import View
from regardant.layers.feed_forward import FeedForward
from regardant.layers.multi_head import CrossAttention, HeadShape, ProjectedMemory, SelfAttention, SelfAttentionState
from regardant.layers.residual import Residual
from regardant.models.base import Vectors
from regardant.models.config import EncoderDecoderConfig
from regardant.positions import Positions


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention, then feed-forward, each written to the residual stream."""

    def __init__(self, config: EncoderDecoderConfig, positions: Positions) -> None:
        super().__init__()
        shape = HeadShape(config.d_model, config.num_heads, config.key_heads)
        self.self_attention = SelfAttention(shape, config.decoder.self_attention, positions)
        self.cross_attention = CrossAttention(shape, config.decoder.cross_attention)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.inner_dropout)
        self.after_self_attention = Residual(config.d_model, config.norm, config.dropout)
        self.after_cross_attention = Residual(config.d_model, config.norm, config.dropout)
        self.after_feed_forward = Residual(config.d_model, config.norm, config.dropout)

    def forward(
        self, x: Float[Tensor, "B T M"], view: View, memory: Float[Tensor, "B S M"], memory_view: View
    ) -> Float[Tensor, "B T M"]:
        projected = self.cross_attention.project(memory)
        x = self.after_self_attention(x, lambda h: self.self_attention(h, view))
        x = self.after_cross_attention(x, lambda h: self.cross_attention(h, projected, memory_view))
        return self.after_feed_forward(x, self.feed_forward)

    def step(
        self,
        x: Float[Tensor, "N 1 M"],
        state: SelfAttentionState,
        view: View,
        memory: ProjectedMemory,
        memory_view: View,
    ) -> tuple[Float[Tensor, "N 1 M"], SelfAttentionState]:
        """One token more of every beam."""

        def attend_to_self(h: Tensor) -> Tensor:
            nonlocal state
            mixed, state = self.self_attention.step(h, state, view)
            return mixed

        def attend_to_memory(h: Tensor) -> Tensor:
            # The beams of a sentence are queries on one memory, so that nothing of it is copied for them.
            beams = h.view(len(memory.keys), -1, h.shape[-1])
            return self.cross_attention(beams, memory, memory_view).view_as(h)

        x = self.after_self_attention(x, attend_to_self)
        x = self.after_cross_attention(x, attend_to_memory)
        return self.after_feed_forward(x, self.feed_forward), state


@dataclass
class DecoderState:
    """What the stack remembers between steps: implements `models.base.DecodingState`."""

    beam_size: int
    own: list[SelfAttentionState]
    """Of each layer's self-attention."""
    memory: list[ProjectedMemory]
    """Of each layer's cross-attention."""
    memory_view: View
    length: int = 0
    """Steps taken."""

    def reorder(self, beams: Int[Tensor, "B W"]) -> None:
        if self.beam_size > 1:
            first = torch.arange(len(beams), device=beams.device)[:, None] * self.beam_size
            self._move((first + beams).flatten())

    def keep(self, sentences: Int[Tensor, " B2"]) -> None:
        beams = torch.arange(self.beam_size, device=sentences.device)
        self._move((sentences[:, None] * self.beam_size + beams).flatten())
        self.memory = [projected.keep(sentences) for projected in self.memory]
        if self.memory_view.keys is not None:
            self.memory_view = View(keys=self.memory_view.keys[sentences])

    def _move(self, rows: Tensor) -> None:
        self.own = [state.reorder(rows) for state in self.own]


class Decoder(nn.Module):
    """The layers, and the last norm that a pre-norm stream needs."""

    layers: Sequence[DecoderLayer]

    def __init__(self, config: EncoderDecoderConfig, positions: Positions) -> None:
        super().__init__()
        layers = nn.ModuleList(DecoderLayer(config, positions) for _ in range(config.decoder.num_layers))
        self.layers = layers  # type: ignore[assignment]  # a ModuleList does not name its element
        self.final_norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
        self.positions = positions

    def forward(self, x: Float[Tensor, "B T M"], memory: Vectors) -> Float[Tensor, "B T M"]:
        """All positions at once; padding stands at the end, where no real position looks."""
        view, memory_view = self._view(), View(keys=memory.real)
        for layer in self.layers:
            x = layer(x, view, memory.values, memory_view)
        return self.final_norm(x)

    def start(self, memory: Vectors, beam_size: int, max_length: int) -> DecoderState:
        """Project the memory once; begin every layer's own state."""
        projected = [layer.cross_attention.project(memory.values) for layer in self.layers]
        own = [layer.self_attention.start(max_length) for layer in self.layers]
        return DecoderState(beam_size, own, projected, View(keys=memory.real))

    def step(self, x: Float[Tensor, "N 1 M"], state: DecoderState) -> Float[Tensor, "N 1 M"]:
        """The newest token of every beam; `state` is changed in place."""
        view = self._view()
        for i, layer in enumerate(self.layers):
            x, state.own[i] = layer.step(x, state.own[i], view, state.memory[i], state.memory_view)
        state.length += 1
        return self.final_norm(x)

    def _view(self) -> View:
        return View(causal=True, bias=self.positions.bias if self.positions.acts_on == "scores" else None)
