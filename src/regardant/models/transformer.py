"""The part that Transformers of every shape share: sizes, heads, norms, positions, and how a stack is put together."""

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
from regardant.layers.residual import NormPlace, Residual, ResidualKind, Stream, open_stream
from regardant.models.representations import InputShape
from regardant.positions import Positions, PositionsConfig, SinusoidalConfig


class EncoderStackConfig(Config):
    """The stack that reads."""

    num_layers: int = Field(4, gt=0, le=1000)
    """Number of layers."""

    self_attention: MixerConfig = ScaledDotProductConfig()
    """The attention among the elements; or a convolution, or a dense layer over positions."""


class DecoderStackConfig(Config):
    """The stack that writes."""

    num_layers: int = Field(4, gt=0, le=1000)
    """Number of layers."""

    self_attention: MixerConfig = ScaledDotProductConfig()
    """The attention of a token to those before it; or a convolution, or a dense layer over positions."""

    cross_attention: AttentionConfig = ScaledDotProductConfig()
    """The attention of a target token to the source."""


class TransformerConfig(Config):
    """The part of a Transformer's configuration that does not depend on its stacks."""

    d_model: int = Field(128, gt=0)
    """Size of a token's vector between layers. A multiple of num_heads, unless key_size and value_size are given."""

    num_heads: int = Field(4, gt=0)
    """Attention heads in every layer."""

    num_key_heads: int | None = Field(None, gt=0)
    """Heads of keys and values, shared by groups of query heads. Empty: as many as num_heads."""

    key_size: int | None = Field(None, gt=0)
    """Numbers of a head's queries and keys (d_k). Empty: d_model / num_heads."""

    value_size: int | None = Field(None, gt=0)
    """Numbers of a head's values (d_v). Empty: d_model / num_heads."""

    projections: Projections = "separate"
    """Sharing of matrices among query, key and value of a self-attention. none: they are the tokens themselves."""

    attention_bias: bool = True
    """Whether the projections of attention have biases."""

    attention_output: bool = True
    """Whether a matrix mixes the heads of a self-attention. Without it and attention_bias, one head of
    `projections: all` is softmax(X U Uᵀ Xᵀ) X U, unscaled with `scaled: false`."""

    d_ff: int = Field(256, gt=0)
    """Inner width of the feed-forward network."""

    feed_forward: FeedForwardConfig = LinearFeedForwardConfig()
    """Feed-forward network after attention: of each token by itself, or with its neighbours (kind convolution)."""

    dropout: float = Field(0.3, ge=0, lt=1)
    """Chance that a value is zeroed: on embeddings, on what each sublayer writes, inside the feed-forward network."""

    embedding_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout on embeddings, if it differs from dropout."""

    feed_forward_dropout: float | None = Field(None, ge=0, lt=1)
    """Inside the feed-forward network, where it differs from dropout."""

    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the weights of attention (BERT, GAT). Training then builds these weights, as no fast kernel does."""

    norm: NormPlace = "pre"
    """Place of the norm: before each sublayer (trains stably) or after it (the original)."""

    normalisation: NormConfig = LayerNormConfig()
    """layer_norm divides by sqrt(variance + eps), layer_norm_sigma by deviation + eps, rms_norm keeps the mean."""

    residual: ResidualKind = "add"
    """How a sublayer's output joins its input. none: it replaces it (an ablation). reversible: two streams written
    from each other, so that training keeps no activations between layers. composition: a layer is
    x + FFN(x + Attention(x))."""

    activation_checkpointing: bool = False
    """Keep only the input of each sublayer in training, and compute the rest again for its gradient: a fraction of
    the memory for a third more computing. Weights and gradients stay the same."""

    positions: PositionsConfig = SinusoidalConfig()
    """Encoding of the tokens' positions."""

    scale_embeddings: bool = True
    """Multiply embeddings by sqrt(d_model)."""

    embedding_norm: bool = False
    """Normalise embeddings, with their positions, before the first layer (BERT)."""

    @model_validator(mode="after")
    def heads_divide(self) -> Self:
        """d_model by num_heads where a head's size follows from them, num_heads by num_key_heads."""
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
        """Refuse shared matrices of heads of unequal sizes."""
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
        """Refuse streams that are read normalised with another norm than pre."""
        if self.residual in ("reversible", "composition") and self.norm == "post":
            raise ValueError(f"{self.residual} residuals normalise what a sublayer reads: set norm=pre")
        return self

    @model_validator(mode="after")
    def computes_again_once(self) -> Self:
        """Reversible residuals do so by themselves."""
        if self.residual == "reversible" and self.activation_checkpointing:
            raise ValueError(
                "reversible residuals keep no activations that activation_checkpointing could forget: choose one"
            )
        if self.residual == "composition" and self.activation_checkpointing:
            raise ValueError("composed residuals keep all activations: set activation_checkpointing=false")
        return self

    def require_room_beside_positions(self, max_length: int, *, tied: bool) -> None:
        """Raise ValueError if positions beside a token's vector leave it no numbers, or fewer than a tied output."""
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
        """Return what the representation of an input has to be like."""
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
        """Return what writes a sublayer's output to the residual stream."""
        return Residual(
            self.d_model,
            self.norm,
            self.dropout,
            adds=self.residual != "none",
            normalisation=self.normalisation,
            ends_layer=ends_layer,
        )

    def build_last_norm(self) -> nn.Module:
        """Return the norm after the last layer: a pre-norm stream has not been normalised."""
        return self.normalisation.build(self.d_model) if self.norm == "pre" else nn.Identity()

    @property
    def open_stream(self) -> Callable[..., Stream]:
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
        """Whether the backward pass computes sublayers again."""
        return self.activation_checkpointing or self.residual == "reversible"

    @property
    def key_heads(self) -> int:
        """Heads of keys and values."""
        return self.num_key_heads or self.num_heads

    @property
    def inner_dropout(self) -> float:
        """Inside the feed-forward network."""
        return self.dropout if self.feed_forward_dropout is None else self.feed_forward_dropout

    @property
    def input_dropout(self) -> float:
        """Dropout on embeddings."""
        return self.dropout if self.embedding_dropout is None else self.embedding_dropout


def initialise(model: nn.Module) -> None:
    """Give linear layers and convolutions Glorot-uniform weights, and biases of zero."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv1d):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
