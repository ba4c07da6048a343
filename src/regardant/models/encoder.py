"""A stack that reads: self-attention and feed-forward, both ways.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.1.

Shape legend: B sentences, S source length, M d_model.
"""

from collections.abc import Sequence

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regardant.attention import View
from regardant.layers.feed_forward import build_feed_forward
from regardant.layers.mixers import build_mixer
from regardant.layers.norms import build_norm
from regardant.layers.residual import Residual, Stream, open_stream
from regardant.models.config import EncoderDecoderConfig
from regardant.models.transformer import TransformerConfig
from regardant.positions import Positions


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each written to the residual stream."""

    def __init__(self, config: EncoderDecoderConfig, positions: Positions) -> None:
        super().__init__()
        self.self_attention = build_mixer(
            config.encoder.self_attention,
            config.heads,
            positions,
            config.projections,
            max_length=config.max_length,
            causal=False,
        )
        self.feed_forward = build_feed_forward(
            config.feed_forward, config.d_model, config.d_ff, config.inner_dropout, causal=False
        )
        self.after_self_attention = build_residual(config)
        self.after_feed_forward = build_residual(config)

    def forward(self, stream: Stream, view: View) -> None:
        stream.write(self.after_self_attention, lambda h: self.self_attention(h, view))
        stream.write(self.after_feed_forward, lambda h: self.feed_forward(h, view.keys))


class Encoder(nn.Module):
    """The layers, and the last norm that a pre-norm stream needs."""

    layers: Sequence[EncoderLayer]

    def __init__(self, config: EncoderDecoderConfig, positions: Positions) -> None:
        super().__init__()
        layers = nn.ModuleList(EncoderLayer(config, positions) for _ in range(config.encoder.num_layers))
        self.layers = layers  # type: ignore[assignment]  # a ModuleList does not name its element
        self.final_norm = last_norm(config)
        self.positions = positions
        self.config = config

    def forward(self, x: Float[Tensor, "B S M"], real: Bool[Tensor, "B S"]) -> Float[Tensor, "B S M"]:
        """What the last layer says."""
        stream, view = open_stack(self.config, x, training=self.training), self._view(real)
        for layer in self.layers:
            layer(stream, view)
        return self.final_norm(stream.close())

    def of_every_layer(self, x: Float[Tensor, "B S M"], real: Bool[Tensor, "B S"]) -> list[Float[Tensor, "B S M"]]:
        """What each layer says, normalised like the last one."""
        view, said = self._view(real), []
        for layer in self.layers:
            stream = open_stack(self.config, x, training=self.training)
            layer(stream, view)
            x = stream.close()
            said.append(self.final_norm(x))
        return said

    def _view(self, real: Tensor) -> View:
        return View(keys=real, bias=self.positions.shared_bias(), recomputed=self.config.recomputes)


def open_stack(config: TransformerConfig, x: Tensor, *, training: bool) -> Stream:
    """The stream that the layers of this model write to."""
    return open_stream(config.residual, x, training=training, checkpointing=config.activation_checkpointing)


def build_residual(config: TransformerConfig) -> Residual:
    """How a sublayer of this model writes."""
    return Residual(
        config.d_model,
        config.norm,
        config.dropout,
        adds=config.residual != "none",
        normalisation=config.normalisation,
    )


def last_norm(config: TransformerConfig) -> nn.Module:
    """After the last layer: a pre-norm stream has not been normalised."""
    return build_norm(config.normalisation, config.d_model) if config.norm == "pre" else nn.Identity()
