"""Settings and initialisation that all Transformers share: sizes, heads, norms, residuals, positions."""

from collections.abc import Callable
from functools import partial
from typing import Self

from pydantic import Field, model_validator
from torch import nn

from regardant.attention import AttentionConfig, ScaledDotProductConfig
from regardant.config import Config
from regardant.layers.feed_forward import FeedForwardConfig, LinearFeedForwardConfig
from regardant.layers.mixers import MixerConfig
from regardant.layers.multi_head import HeadShape, Projections
from regardant.layers.norms import LayerNormConfig, NormConfig
from regardant.layers.residual import NormPlace, Residual, ResidualKind, ResidualStream, open_stream
from regardant.models.representations import InputShape
from regardant.positions import Positions, PositionsConfig, SinusoidalConfig


class EncoderStackConfig(Config):
    """Stack of encoder layers."""

    num_layers: int = Field(4, gt=0, le=1000)
    """Number of layers."""

    self_attention: MixerConfig = ScaledDotProductConfig()
    """Self-attention among the elements; or a convolution, or a dense layer over positions."""


class DecoderStackConfig(Config):
    """Stack of decoder layers."""

    num_layers: int = Field(4, gt=0, le=1000)
    """Number of layers."""

    self_attention: MixerConfig = ScaledDotProductConfig()
    """Causal self-attention among the tokens; or a convolution, or a dense layer over positions."""

    cross_attention: AttentionConfig = ScaledDotProductConfig()
    """Attention from target tokens to the source."""


class TransformerConfig(Config):
    """The part of a Transformer's configuration that does not depend on its stacks."""

    d_model: int = Field(128, gt=0)
    """Size of a token's vector between layers. A multiple of num_heads, unless key_size and value_size are given."""

    num_heads: int = Field(4, gt=0)
    """Number of attention heads in every layer."""

    num_key_heads: int | None = Field(None, gt=0)
    """Number of heads of keys and values, shared by groups of query heads. Empty: num_heads."""

    key_size: int | None = Field(None, gt=0)
    """Size of a head's queries and keys (d_k). Empty: d_model / num_heads."""

    value_size: int | None = Field(None, gt=0)
    """Size of a head's values (d_v). Empty: d_model / num_heads."""

    projections: Projections = "separate"
    """Sharing of matrices among query, key and value of a self-attention. none: all three are the tokens themselves."""

    attention_bias: bool = True
    """True if the projections of attention have biases."""

    attention_output: bool = True
    """True if a matrix mixes the heads of a self-attention. Without it and attention_bias, one head of
    `projections: all` is softmax(X U Uᵀ Xᵀ) X U, unscaled with `scaled: false`."""

    d_ff: int = Field(256, gt=0)
    """Inner width of the feed-forward network."""

    feed_forward: FeedForwardConfig = LinearFeedForwardConfig()
    """Feed-forward network after attention: of each token by itself, or with its neighbours (kind convolution)."""

    dropout: float = Field(0.3, ge=0, lt=1)
    """Probability that a value is zeroed: on embeddings, on each sublayer's output, inside the feed-forward network."""

    embedding_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout on embeddings, if it differs from dropout."""

    feed_forward_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout inside the feed-forward network, if it differs from dropout."""

    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on attention weights (BERT, GAT). Training then materialises the weights, which fast kernels avoid."""

    norm: NormPlace = "pre"
    """Place of the norm: before each sublayer (trains stably) or after it (the original)."""

    normalisation: NormConfig = LayerNormConfig()
    """Norm: layer_norm divides by sqrt(variance + eps), layer_norm_sigma by std + eps, rms_norm keeps the mean."""

    residual: ResidualKind = "add"
    """Combination of a sublayer's output with its input. add: their sum. none: the output alone (an ablation).
    reversible: two streams written from each other, so that training keeps no activations between layers. composition:
    a layer is x + FFN(x + Attention(x))."""

    activation_checkpointing: bool = False
    """Keep only the input of each sublayer in training, and recompute the rest in the backward pass: a fraction of the
    memory for a third more computing. Weights and gradients stay the same."""

    positions: PositionsConfig = SinusoidalConfig()
    """Encoding of the tokens' positions."""

    scale_embeddings: bool = True
    """Multiply embeddings by sqrt(d_model)."""

    embedding_norm: bool = False
    """Normalise embeddings, with their positions, before the first layer (BERT)."""

    @model_validator(mode="after")
    def heads_divide(self) -> Self:
        """Refuse num_heads that must divide d_model and do not, and num_key_heads that do not divide num_heads."""
        if self.d_model % self.num_heads and not (self.key_size and self.value_size):
            raise ValueError(
                f"d_model ({self.d_model}) must be a multiple of num_heads ({self.num_heads}), or key_size and "
                "value_size be given"
            )
        if self.num_heads % self.key_heads:
            raise ValueError(f"num_heads ({self.num_heads}) must be a multiple of num_key_heads ({self.key_heads})")
        return self

    @model_validator(mode="after")
    def shared_projections_are_of_one_size(self) -> Self:
        """Refuse heads of sizes or numbers that shared projections, or a missing output matrix, do not allow."""
        shape = self.heads
        if self.projections in ("query_key", "all", "none") and shape.num_heads != shape.num_key_heads:
            raise ValueError(
                f"projections '{self.projections}' need as many key heads as heads: leave out num_key_heads"
            )
        if self.projections in ("key_value", "all", "none") and shape.key_size != shape.value_size:
            raise ValueError(
                f"projections '{self.projections}' make keys and values the same, but key_size is {shape.key_size} and "
                f"value_size {shape.value_size}: make them equal"
            )
        if not self.attention_output and shape.num_heads * shape.value_size != self.d_model:
            raise ValueError(
                f"without attention_output the heads' {shape.num_heads} x {shape.value_size} numbers must be d_model "
                f"({self.d_model}): leave out value_size"
            )
        if self.projections == "none" and shape.num_heads * shape.key_size != self.d_model:
            raise ValueError(
                "projections 'none' cut the tokens themselves into heads: leave out key_size and value_size"
            )
        return self

    @model_validator(mode="after")
    def two_streams_are_pre_norm(self) -> Self:
        """Refuse norm=post for residuals that normalise the input of a sublayer."""
        if self.residual in ("reversible", "composition") and self.norm == "post":
            raise ValueError(f"{self.residual} residuals normalise the input of a sublayer: set norm=pre")
        return self

    @model_validator(mode="after")
    def computes_again_once(self) -> Self:
        """Refuse activation checkpointing for residuals that recompute activations themselves, or keep them all."""
        if self.residual == "reversible" and self.activation_checkpointing:
            raise ValueError(
                "reversible residuals keep no activations that activation_checkpointing could discard: choose one"
            )
        if self.residual == "composition" and self.activation_checkpointing:
            raise ValueError("composed residuals keep all activations: set activation_checkpointing=false")
        return self

    def require_room_beside_positions(self, max_length: int, *, tied: bool) -> None:
        """Raise ValueError if concatenated positions leave a token no dimensions, or fewer than a tied output has."""
        width = self.positions.width(self.d_model, max_length)
        if width >= self.d_model:
            raise ValueError(
                f"positions of {width} numbers leave none of d_model ({self.d_model}) to the token: raise d_model, or "
                "lower max_length or positions.size"
            )
        if width and tied:
            raise ValueError(
                f"positions take {width} of a token's {self.d_model} numbers, so that its vector is shorter than the "
                "output's: set tie_embeddings=none"
            )

    def build_positions(self, max_length: int, *, causal: bool) -> Positions:
        """Return the position scheme of a stack."""
        return self.positions.build(
            d_model=self.d_model,
            num_heads=self.num_heads,
            head_size=self.heads.key_size,
            max_length=max_length,
            causal=causal,
        )

    def input_shape(self, positions: Positions, *, class_token: bool = False) -> InputShape:
        """Return the requirements on the representation of an input."""
        return InputShape(
            self.d_model,
            positions,
            self.scale_embeddings,
            self.input_dropout,
            class_token,
            num_heads=self.num_heads,
            normalisation=self.normalisation if self.embedding_norm else None,
        )

    def build_residual(self, *, ends_layer: bool = False) -> Residual:
        """Return the module that writes a sublayer's output to the residual stream."""
        return Residual(
            self.d_model,
            self.norm,
            self.dropout,
            adds=self.residual != "none",
            normalisation=self.normalisation,
            ends_layer=ends_layer,
        )

    def build_last_norm(self) -> nn.Module:
        """Return the norm after the last layer, which only a pre-norm stream needs."""
        return self.normalisation.build(self.d_model) if self.norm == "pre" else nn.Identity()

    @property
    def open_stream(self) -> Callable[..., ResidualStream]:
        """The function that opens the residual stream of a stack: (x, training=...) to the stream."""
        return partial(open_stream, self.residual, checkpointing=self.activation_checkpointing)

    @property
    def heads(self) -> HeadShape:
        """Sizes of queries, keys and values."""
        each = self.d_model // self.num_heads
        sizes = self.key_size or each, self.value_size or each
        return HeadShape(
            self.d_model,
            self.num_heads,
            self.key_heads,
            *sizes,
            bias=self.attention_bias,
            output=self.attention_output,
            dropout=self.attention_dropout,
        )

    @property
    def recomputes(self) -> bool:
        """True if the backward pass recomputes sublayers."""
        return self.activation_checkpointing or self.residual == "reversible"

    @property
    def key_heads(self) -> int:
        """Number of heads of keys and values."""
        return self.num_key_heads or self.num_heads

    @property
    def inner_dropout(self) -> float:
        """Dropout probability inside the feed-forward network."""
        return self.dropout if self.feed_forward_dropout is None else self.feed_forward_dropout

    @property
    def input_dropout(self) -> float:
        """Dropout probability on embeddings."""
        return self.dropout if self.embedding_dropout is None else self.embedding_dropout


def initialise(model: nn.Module) -> None:
    """Initialise linear layers and convolutions with Glorot-uniform weights and zero biases."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv1d):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
