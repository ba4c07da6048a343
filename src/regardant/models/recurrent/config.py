"""The configuration of recurrent encoder-decoders."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from regardant.attention import AttentionConfig, ScaledDotProductConfig
from regardant.attention.additive import AdditiveConfig
from regardant.config import Config
from regardant.layers.recurrent import Cell, Combine
from regardant.models.base import Model, ModelConfig


class SutskeverConfig(Config):
    """The source is known by the decoder's first state alone (Sutskever et al. 2014)."""

    kind: Literal["sutskever"] = "sutskever"


class ChoConfig(Config):
    """One context, the encoder's last state, is read again at every step (Cho et al. 2014)."""

    kind: Literal["cho"] = "cho"


class BahdanauConfig(Config):
    """The state before a step asks the source, and the step reads the answer (Bahdanau et al. 2015)."""

    kind: Literal["bahdanau"] = "bahdanau"

    attention: AttentionConfig = AdditiveConfig()
    """How a state weighs the source; states and source are projected for it."""


class LuongConfig(Config):
    """The state after a step asks the source; both together say the next token (Luong et al. 2015)."""

    kind: Literal["luong"] = "luong"

    attention: AttentionConfig = ScaledDotProductConfig(scaled=False)
    """How a state weighs the source, both as they are: dot (this default), `general`, `location`, `window` (local-m),
    `local_predictive` (local-p); or both projected: `additive` (concat)."""

    input_feeding: bool = True
    """Read what attention last said together with the next token."""


AnyDecoder = Annotated[SutskeverConfig | ChoConfig | BahdanauConfig | LuongConfig, Field(discriminator="kind")]


class RecurrentConfig(ModelConfig):
    """A recurrent encoder and a recurrent decoder."""

    kind: Literal["recurrent"] = "recurrent"

    cell: Cell = "gru"
    """The kind of recurrence."""

    embedding_size: int = Field(128, gt=0)
    """Numbers of a token's vector."""

    hidden_size: int = Field(256, gt=0)
    """Numbers of a state, and of what the encoder hands over for each token."""

    num_layers: int = Field(1, gt=0)
    """Layers of the encoder, and of the decoder."""

    bidirectional: bool = True
    """Read the source from both sides."""

    combine: Combine = "concatenate"
    """Both directions: half of hidden_size each side by side, or all of it each and added."""

    decoder: AnyDecoder = BahdanauConfig()
    """How the source is known while the target is written."""

    bptt: int | None = Field(None, gt=0)
    """Target tokens that a gradient goes back in time. Empty: all of them."""

    dropout: float = Field(0.3, ge=0, lt=1)
    """Chance that a value is zeroed: of embeddings, between layers, before the output."""

    tie_embeddings: Literal["all", "target", "none"] = "all"
    """One matrix for source, target and output; for target and output; or three. `all` needs a joint vocabulary."""

    @model_validator(mode="after")
    def directions_share(self) -> Self:
        """Two concatenated directions have half of the numbers each."""
        if self.bidirectional and self.combine == "concatenate" and self.hidden_size % 2:
            raise ValueError(f"hidden_size ({self.hidden_size}) is shared by two directions: make it even")
        return self

    @property
    def joint(self) -> bool:
        return self.tie_embeddings == "all"

    def build(self, source_vocab_size: int, target_vocab_size: int) -> Model:
        from regardant.models.recurrent.model import RecurrentEncoderDecoder  # which reads this configuration

        return RecurrentEncoderDecoder(self, source_vocab_size, target_vocab_size)
