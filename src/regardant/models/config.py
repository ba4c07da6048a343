"""The encoder-decoder Transformer's configuration and its presets."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from regardant.attention import AttentionConfig, ScaledDotProductConfig
from regardant.config import Config
from regardant.layers.mixers import MixerConfig
from regardant.models.base import Model, ModelConfig
from regardant.models.transformer import TransformerConfig

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

    self_attention: MixerConfig = ScaledDotProductConfig()
    """How source tokens weigh each other; or a convolution, or a dense layer over positions."""


class DecoderConfig(Config):
    """The stack that writes."""

    num_layers: int = Field(4, gt=0)
    """How many layers."""

    self_attention: MixerConfig = ScaledDotProductConfig()
    """How a target token weighs those before it; or a convolution, or a dense layer over positions."""

    cross_attention: AttentionConfig = ScaledDotProductConfig()
    """How a target token weighs the source."""


class EncoderDecoderConfig(TransformerConfig, ModelConfig):
    """The encoder-decoder Transformer (Vaswani et al. 2017) and every knob it has."""

    kind: Literal["encoder_decoder"] = "encoder_decoder"

    preset: Preset | Literal["auto"] | None = "tiny"
    """Sizes to start from; whatever else is set goes before it. auto: picked from the size of the corpus."""

    memory: Literal["final", "per_layer"] = "final"
    """What decoder layers read: the last encoder layer, or each the one of its own height."""

    tie_embeddings: Literal["all", "target", "none"] = "all"
    """One matrix for source, target and output; for target and output; or three. `all` needs a joint vocabulary."""

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
    def layers_have_their_memory(self) -> Self:
        """Activations must be kept, and a layer of its own height must be there."""
        if self.memory == "per_layer" and self.residual == "reversible":
            raise ValueError("memory 'per_layer' keeps what reversible residuals are there to forget: choose one")
        if self.memory == "per_layer" and self.encoder.num_layers != self.decoder.num_layers:
            raise ValueError(
                f"memory 'per_layer' pairs layers, but the encoder has {self.encoder.num_layers} and the decoder "
                f"{self.decoder.num_layers}: make them equal"
            )
        return self

    @model_validator(mode="after")
    def positions_leave_room(self) -> Self:
        """Where they are put beside it."""
        self.require_room_beside_positions(self.max_length, tied=self.tie_embeddings != "none")
        return self

    @property
    def joint(self) -> bool:
        return self.tie_embeddings == "all"

    def build(self, source_vocab_size: int, target_vocab_size: int) -> Model:
        from regardant.models.encoder_decoder import EncoderDecoder  # which reads this configuration

        return EncoderDecoder(self, source_vocab_size, target_vocab_size)
