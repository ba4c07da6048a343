"""A stack that reads: self-attention and feed-forward, both ways.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.1.

Shape legend: B sentences, S source length, M d_model.
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regardant.attention import View
from regardant.layers.feed_forward import FeedForward
from regardant.layers.multi_head import HeadShape, SelfAttention
from regardant.layers.residual import Residual
from regardant.models.config import EncoderDecoderConfig
from regardant.positions import Positions


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each written to the residual stream."""

    def __init__(self, config: EncoderDecoderConfig, positions: Positions) -> None:
        super().__init__()
        shape = HeadShape(config.d_model, config.num_heads, config.key_heads)
        self.self_attention = SelfAttention(shape, config.encoder.self_attention, positions)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.inner_dropout)
        self.after_self_attention = Residual(config.d_model, config.norm, config.dropout)
        self.after_feed_forward = Residual(config.d_model, config.norm, config.dropout)

    def forward(self, x: Float[Tensor, "B S M"], view: View) -> Float[Tensor, "B S M"]:
        x = self.after_self_attention(x, lambda h: self.self_attention(h, view))
        return self.after_feed_forward(x, self.feed_forward)


class Encoder(nn.Module):
    """The layers, and the last norm that a pre-norm stream needs."""

    def __init__(self, config: EncoderDecoderConfig, positions: Positions) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config, positions) for _ in range(config.encoder.num_layers))
        self.final_norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
        self.positions = positions

    def forward(self, x: Float[Tensor, "B S M"], real: Bool[Tensor, "B S"]) -> Float[Tensor, "B S M"]:
        view = View(keys=real, bias=self.positions.bias if self.positions.acts_on == "scores" else None)
        for layer in self.layers:
            x = layer(x, view)
        return self.final_norm(x)
