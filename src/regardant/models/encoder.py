"""A Transformer stack that reads: self-attention and feed-forward, both ways.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.1.

Shape legend: B batch, T elements, M d_model.
"""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor, nn

from regardant.attention import View
from regardant.layers.mixers import build_mixer
from regardant.layers.residual import Stream
from regardant.models.sequence import SequenceEncoder
from regardant.models.transformer import EncoderStackConfig, TransformerConfig
from regardant.models.vectors import Vectors
from regardant.positions import Positions


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each written to the residual stream."""

    def __init__(
        self, config: TransformerConfig, stack: EncoderStackConfig, positions: Positions, max_length: int
    ) -> None:
        super().__init__()
        self.self_attention = build_mixer(
            stack.self_attention, config.heads, positions, config.projections, max_length=max_length, causal=False
        )
        self.feed_forward = config.feed_forward.build(config.d_model, config.d_ff, config.inner_dropout, causal=False)
        self.after_self_attention = config.build_residual()
        self.after_feed_forward = config.build_residual()

    def forward(self, stream: Stream, view: View) -> None:
        stream.write(self.after_self_attention, self.self_attention, view)
        stream.write(self.after_feed_forward, self.feed_forward, view)


class Encoder(SequenceEncoder):
    """The layers, and the last norm that a pre-norm stream needs.

    `keeps_layers`: whether the outputs of all layers are handed on, for a decoder whose layers each read their own.
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
        layers = nn.ModuleList(EncoderLayer(config, stack, positions, max_length) for _ in range(stack.num_layers))
        self.layers = layers  # type: ignore[assignment]  # a ModuleList does not name its element
        self.final_norm = config.build_last_norm()
        self.positions = positions
        self.position_bias, self.recomputed = positions.shared_bias(), config.recomputes
        self.open_stream = config.open_stream
        self.keeps_layers = keeps_layers

    def forward(self, x: Vectors) -> Vectors:
        """Return the output of the last layer, normalised; with it those of the others, where they are kept."""
        view = x.view(bias=self.position_bias, recomputed=self.recomputed)
        if self.keeps_layers:
            *earlier, last = self._outputs(x.values, view)
            return replace(x, values=last, layers=earlier)
        stream = self.open_stream(x.values, training=self.training)
        for layer in self.layers:
            layer(stream, view)
        return x.with_values(self.final_norm(stream.close()))

    def _outputs(self, values: Tensor, view: View) -> list[Tensor]:
        """The output of each layer, normalised like that of the last."""
        outputs = []
        for layer in self.layers:
            stream = self.open_stream(values, training=self.training)
            layer(stream, view)
            values = stream.close()
            outputs.append(self.final_norm(values))
        return outputs
