"""The encoder-decoder Transformer's configuration and its presets."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from regardant.attention import AnyAttention, ScaledDotProductConfig
from regardant.config import Config
from regardant.layers.residual import NormPlace
from regardant.positions import AnyPositions, SinusoidalConfig

Preset = Literal["tiny", "small", "base", "big"]


def _sizes(d_model: int, num_layers: int, num_heads: int, d_ff: int, dropout: float, norm: str) -> dict[str, Any]:
    return {
        "d_model": d_model,
        "num_heads": num_heads,
        "d_ff": d_ff,
        "dropout": dropout,
        "norm": norm,
        "encoder": {"num_layers": num_layers},
        "decoder": {"num_layers": num_layers},
    }


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": _sizes(128, 4, 4, 256, 0.3, "pre"),
    "small": _sizes(256, 3, 4, 1024, 0.1, "pre"),
    "base": _sizes(512, 6, 8, 2048, 0.1, "post"),
    "big": _sizes(1024, 6, 16, 4096, 0.3, "post"),
}
"""tiny: Wu et al. 2021 (https://arxiv.org/abs/2105.14462). base, big: Vaswani et al. 2017, table 3."""


class EncoderConfig(Config):
    """The stack that reads."""

    num_layers: int = Field(4, gt=0)
    """How many layers."""

    self_attention: AnyAttention = ScaledDotProductConfig()
    """How source tokens weigh each other."""


class DecoderConfig(Config):
    """The stack that writes."""

    num_layers: int = Field(4, gt=0)
    """How many layers."""

    self_attention: AnyAttention = ScaledDotProductConfig()
    """How a target token weighs those before it."""

    cross_attention: AnyAttention = ScaledDotProductConfig()
    """How a target token weighs the source."""


class EncoderDecoderConfig(Config):
    """The encoder-decoder Transformer (Vaswani et al. 2017) and every knob it has."""

    kind: Literal["encoder_decoder"] = "encoder_decoder"

    preset: Preset | Literal["auto"] | None = "tiny"
    """Sizes to start from; whatever else is set goes before it. auto: picked from the size of the corpus."""

    d_model: int = Field(128, gt=0)
    """Size of a token's vector between layers. A multiple of num_heads."""

    num_heads: int = Field(4, gt=0)
    """Attention heads in every layer."""

    num_key_heads: int | None = Field(None, gt=0)
    """Heads of keys and values, shared by groups of query heads. Empty: as many as num_heads."""

    d_ff: int = Field(256, gt=0)
    """Inner width of the feed-forward network."""

    dropout: float = Field(0.3, ge=0, lt=1)
    """Chance that a value is zeroed: on embeddings, on what each sublayer writes, inside the feed-forward network."""

    embedding_dropout: float | None = Field(None, ge=0, lt=1)
    """On embeddings, where it differs from dropout."""

    feed_forward_dropout: float | None = Field(None, ge=0, lt=1)
    """Inside the feed-forward network, where it differs from dropout."""

    norm: NormPlace = "pre"
    """Before each sublayer (trains stably) or after it (the original)."""

    positions: AnyPositions = SinusoidalConfig()
    """Where tokens stand."""

    scale_embeddings: bool = True
    """Multiply embeddings by sqrt(d_model)."""

    tie_embeddings: Literal["all", "target", "none"] = "all"
    """One matrix for source, target and output; for target and output; or three. `all` needs a joint vocabulary."""

    max_length: int = Field(256, gt=1)
    """The longest source or target, in tokens."""

    encoder: EncoderConfig = EncoderConfig()
    """The stack that reads."""

    decoder: DecoderConfig = DecoderConfig()
    """The stack that writes."""

    @model_validator(mode="before")
    @classmethod
    def fill_in_preset(cls, given: Any) -> Any:
        """The preset's sizes wherever none is given."""
        if not isinstance(given, dict):
            return given
        sizes = PRESETS.get(given.get("preset", "tiny"), {})
        filled = {**sizes, **given}
        for stack in ("encoder", "decoder"):
            if isinstance(given.get(stack), dict) and stack in sizes:
                filled[stack] = {**sizes[stack], **given[stack]}
        return filled

    @model_validator(mode="after")
    def heads_divide(self) -> Self:
        """d_model by num_heads, num_heads by num_key_heads."""
        if self.d_model % self.num_heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of num_heads ({self.num_heads})")
        if self.num_heads % self.key_heads:
            raise ValueError(f"num_heads ({self.num_heads}) must be a multiple of num_key_heads ({self.key_heads})")
        return self

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
        """On embeddings."""
        return self.dropout if self.embedding_dropout is None else self.embedding_dropout
