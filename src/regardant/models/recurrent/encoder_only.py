"""A recurrent network that reads one input at once, in the place of a Transformer encoder."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from regardant.layers.dropout import share_key
from regardant.layers.recurrent import Cell, Combine
from regardant.models.base import AttentionKind, EncoderConfig
from regardant.models.encoder_only import EncoderOnly
from regardant.models.heads import HeadBuilder
from regardant.models.recurrent.encoder_decoder import StateEncoder
from regardant.models.representations import InputShape, RepresentationBuilder
from regardant.positions.none import NoPositions


class RecurrentEncoderConfig(EncoderConfig):
    """Recurrent layers over the elements: an LSTM from both sides by default."""

    kind: Literal["recurrent"] = "recurrent"

    cell: Cell = "lstm"
    """The kind of recurrence."""

    embedding_size: int = Field(128, gt=0)
    """Size of an element's vector."""

    hidden_size: int = Field(256, gt=0)
    """Size of a state, both directions together."""

    num_layers: int = Field(1, gt=0, le=1000)
    """Number of layers."""

    bidirectional: bool = True
    """Read from both sides."""

    combine: Combine = "concatenate"
    """Both directions: half of hidden_size each side by side, or all of it each and added."""

    dropout: float = Field(0.3, ge=0, lt=1)
    """Chance that a value is zeroed: of embeddings, between layers."""

    def build(self, representation: RepresentationBuilder, head: HeadBuilder) -> EncoderOnly:
        answers = head(self.hidden_size)
        if (answers.reads_class_token or answers.pooling == "first") and not self.bidirectional:
            vector = "a class token stands before all" if answers.reads_class_token else "the first stands before other"
            raise ValueError(
                f"{vector} elements, of which an encoder from one side has read none: set bidirectional=true, or "
                "choose a head without a class token (such as one of pooling last)"
            )
        inputs = InputShape(
            self.embedding_size, NoPositions(), dropout=self.dropout, class_token=answers.reads_class_token
        )
        encoder = StateEncoder(
            self.cell,
            self.embedding_size,
            self.hidden_size,
            self.num_layers,
            self.dropout,
            bidirectional=self.bidirectional,
            combine=self.combine,
        )
        model = RecurrentEncoderOnly(self, representation(inputs), encoder, answers)
        if not model.reads_order:
            raise ValueError(
                f"a recurrent network reads elements in order, and a {model.input.unit} has none: choose another model "
                "(encoder_only, or bag)"
            )
        model.dropout_key = share_key(model)
        return model


class RecurrentEncoderOnly(EncoderOnly):
    """Reads element by element."""

    @property
    def attention_kinds(self) -> Mapping[str, AttentionKind]:
        return {}
