"""The decoder-only Transformer: goes on with a text, token by token.

Radford et al. 2019, "Language models are unsupervised multitask learners" (GPT-2): layers of causal self-attention and
feed-forward with a norm before each, learned positions, GELU, one matrix for input and output. Every part is by
configuration that of the encoder-decoder, whose decoder this is with nothing to look at.

Shape legend: N texts, T tokens, M d_model, V vocabulary.
"""

from collections.abc import Sequence
from typing import Literal

from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from regardant.attention import ScaledDotProductConfig, View
from regardant.layers import feed_forward as networks
from regardant.layers.dropout import share_key
from regardant.layers.mixers import MixerConfig, build_mixer
from regardant.layers.residual import Stream
from regardant.models.base import CausalModel, CausalModelConfig
from regardant.models.decoder import LayerState, StackState, begin
from regardant.models.encoder import build_residual, last_norm, open_stack
from regardant.models.heads import Loss, NextToken
from regardant.models.representations.tokens import TokenEmbedding
from regardant.models.transformer import TransformerConfig
from regardant.positions import Positions, PositionsConfig
from regardant.positions.learned import LearnedConfig


class DecoderOnlyConfig(TransformerConfig, CausalModelConfig):
    """The decoder-only Transformer (Radford et al. 2019) and every knob it has."""

    kind: Literal["decoder_only"] = "decoder_only"

    num_layers: int = Field(4, gt=0)
    """How many layers."""

    self_attention: MixerConfig = ScaledDotProductConfig()
    """How a token weighs those before it; or a convolution, or a dense layer over positions."""

    d_ff: int = Field(512, gt=0)
    """Inner width of the feed-forward network."""

    feed_forward: networks.AnyFeedForward = networks.LinearConfig(activation="gelu")
    """What each token goes through by itself after attention."""

    dropout: float = Field(0.0, ge=0, lt=1)
    """Chance that a value is zeroed: on embeddings, on what each sublayer writes, inside the feed-forward network."""

    positions: PositionsConfig = LearnedConfig()
    """Where tokens stand."""

    scale_embeddings: bool = False
    """Multiply embeddings by sqrt(d_model)."""

    tie_embeddings: Literal["all", "none"] = "all"
    """One matrix for input and output, or two."""

    @model_validator(mode="after")
    def positions_leave_room(self) -> "DecoderOnlyConfig":
        """Where they are put beside it."""
        self.require_room_beside_positions(self.max_length, tied=self.tie_embeddings != "none")
        return self

    def build(self, vocab_size: int) -> "DecoderOnly":
        return DecoderOnly(self, vocab_size)


class CausalLayer(nn.Module):
    """Self-attention, then feed-forward, each written to the residual stream."""

    def __init__(self, config: DecoderOnlyConfig, positions: Positions) -> None:
        super().__init__()
        self.self_attention = build_mixer(
            config.self_attention,
            config.heads,
            positions,
            config.projections,
            max_length=config.max_length,
            causal=True,
        )
        self.feed_forward = networks.build_feed_forward(
            config.feed_forward, config.d_model, config.d_ff, config.inner_dropout, causal=True
        )
        self.after_self_attention = build_residual(config)
        self.after_feed_forward = build_residual(config)

    def forward(self, stream: Stream, view: View) -> None:
        stream.write(self.after_self_attention, lambda h: self.self_attention(h, view))
        stream.write(self.after_feed_forward, self.feed_forward)

    def step(self, stream: Stream, state: LayerState, view: View) -> None:
        """The newest tokens of every row; `state` is changed in place."""
        stream.write(self.after_self_attention, lambda h: state.attend(self.self_attention, h, view))
        stream.write(self.after_feed_forward, lambda h: state.feed(self.feed_forward, h))


class DecoderOnly(CausalModel):
    """Reads a text up to any token and says what may come next."""

    layers: Sequence[CausalLayer]

    def __init__(self, config: DecoderOnlyConfig, vocab_size: int) -> None:
        super().__init__()
        self.config: DecoderOnlyConfig = config
        self.positions = config.positions.build(
            d_model=config.d_model,
            num_heads=config.num_heads,
            head_size=config.heads.key_size,
            max_length=config.max_length,
            causal=True,
        )
        self.embedding = TokenEmbedding(
            vocab_size,
            config.d_model,
            positions=self.positions,
            scale=config.scale_embeddings,
            dropout=config.input_dropout,
        )
        layers = nn.ModuleList(CausalLayer(config, self.positions) for _ in range(config.num_layers))
        self.layers = layers  # type: ignore[assignment]  # a ModuleList does not name its element
        self.final_norm = last_norm(config)
        self.head = NextToken(config.d_model, vocab_size)
        self._initialise()
        if config.tie_embeddings == "all":
            self.embedding.table.weight = self.head.weight
        self.dropout_key = share_key(self)

    def forward(self, tokens: Int[Tensor, "N T1"], label_smoothing: float = 0.0, z_loss: float = 0.0) -> Loss:
        """Reads tokens[:, :-1] and has to say tokens[:, 1:]."""
        return self.head.loss(self._read(tokens[:, :-1]), tokens[:, 1:], label_smoothing, z_loss)

    def scores(self, tokens: Int[Tensor, "N T"]) -> Float[Tensor, "N T V"]:
        """Logits of the token after each of `tokens`."""
        return self.head.scores(self._read(tokens))

    def start(self, beam_size: int, max_length: int) -> StackState:
        """The state before the first of at most `max_length` tokens."""
        ancestry, own = begin((layer.self_attention for layer in self.layers), beam_size, max_length)
        return StackState(ancestry=ancestry, own=own)

    def step(self, tokens: Int[Tensor, "N T"], state: StackState) -> Float[Tensor, "N V"]:
        """Logits of the token after the newest ones of every row; `state` is changed in place."""
        x, view = self.embedding(tokens, start=state.length), self._view()
        stream = open_stack(self.config, x, training=self.training)
        for layer, own in zip(self.layers, state.own, strict=True):
            layer.step(stream, own, view)
        state.length += tokens.shape[1]
        return self.head.scores(self.final_norm(stream.close()[:, -1]))

    def _read(self, tokens: Tensor) -> Tensor:
        x, view = self.embedding(tokens), self._view()
        stream = open_stack(self.config, x, training=self.training)
        for layer in self.layers:
            layer(stream, view)
        vectors: Tensor = self.final_norm(stream.close())
        return vectors

    def _view(self) -> View:
        return View(causal=True, bias=self.positions.shared_bias(), recomputed=self.config.recomputes)

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Conv1d):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
