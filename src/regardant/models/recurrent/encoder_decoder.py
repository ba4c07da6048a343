"""The recurrent encoder-decoder: reads a source into states, writes a target from them.

Shape legend: B sentences, S source length, R size of a state.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from regardant.layers.dropout import share_key
from regardant.layers.recurrent import Cell, Combine, RecurrentEncoder
from regardant.models.base import AttentionKind, SequenceToSequenceConfig
from regardant.models.encoder_decoder import EncoderDecoder, Tied
from regardant.models.heads import HeadBuilder
from regardant.models.recurrent.decoders import BahdanauConfig, RecurrentDecoderConfig, RecurrentShape
from regardant.models.representations import InputShape, RepresentationBuilder
from regardant.models.sequence import SequenceEncoder
from regardant.models.vectors import Vectors
from regardant.positions.none import NoPositions


class StateEncoder(SequenceEncoder, RecurrentEncoder):
    """Recurrent encoder over vectors. It returns the states of all elements, and the last ones of every layer."""

    def forward(self, x: Vectors) -> Vectors:
        """Return the states [B, S, R] of all elements. Padding is not read."""
        states, last = self.read(x.values, x.real)
        return replace(x, values=states, state=last)


class RecurrentEncoderDecoder(EncoderDecoder):
    """Recurrent encoder and decoder, one token at a time."""

    former_names: ClassVar[Mapping[str, str]] = {
        "source.weight": "source.table.weight",
        "target.weight": "target.table.weight",
        "narrow.": "decoder.narrow.",
    }

    @property
    def attention_kinds(self) -> dict[str, AttentionKind]:
        return {"decoder.cross_attention": AttentionKind("target", "source")}


class RecurrentConfig(SequenceToSequenceConfig):
    """A recurrent encoder and a recurrent decoder."""

    kind: Literal["recurrent"] = "recurrent"

    cell: Cell = "gru"
    """The kind of recurrence."""

    embedding_size: int = Field(128, gt=0)
    """Size of a token's vector."""

    hidden_size: int = Field(256, gt=0)
    """Size of a state, and of the vector that the encoder gives for each token."""

    num_layers: int = Field(1, gt=0)
    """Layers of the encoder, and of the decoder."""

    bidirectional: bool = True
    """Read the source from both sides."""

    combine: Combine = "concatenate"
    """Both directions: half of hidden_size each side by side, or all of it each and added."""

    decoder: RecurrentDecoderConfig = BahdanauConfig()
    """Decoder, which reads the source in one of several ways."""

    bptt: int | None = Field(None, gt=0)
    """Target tokens that gradients go back (truncated back-propagation through time). Empty: all."""

    dropout: float = Field(0.3, ge=0, lt=1)
    """Chance that a value is zeroed: of embeddings, between layers, before the output."""

    tie_embeddings: Tied = "all"
    """One matrix for source, target and output; for target and output; or three. `all` needs a joint vocabulary."""

    @model_validator(mode="after")
    def directions_share(self) -> "RecurrentConfig":
        """Refuse an odd hidden_size for two concatenated directions."""
        if self.bidirectional and self.combine == "concatenate" and self.hidden_size % 2:
            raise ValueError(f"hidden_size ({self.hidden_size}) is shared by two directions: make it even")
        return self

    @property
    def joint(self) -> bool:
        return self.tie_embeddings == "all"

    @property
    def shape(self) -> RecurrentShape:
        """Sizes that encoder and decoder share."""
        names = RecurrentShape.__dataclass_fields__
        sizes: dict[str, Any] = {name: getattr(self, name) for name in names}
        return RecurrentShape(**sizes)

    def build(
        self, source: RepresentationBuilder, target: RepresentationBuilder, head: HeadBuilder
    ) -> RecurrentEncoderDecoder:
        inputs = InputShape(self.embedding_size, NoPositions(), dropout=self.dropout)
        model = RecurrentEncoderDecoder(
            self,
            source(inputs),
            target(inputs),
            StateEncoder(
                self.cell,
                self.embedding_size,
                self.hidden_size,
                self.num_layers,
                self.dropout,
                bidirectional=self.bidirectional,
                combine=self.combine,
            ),
            self.decoder.build(self.shape),
            head(self.embedding_size),
        )
        model.tie_embeddings(self.tie_embeddings)
        model.check_lengths()
        model.dropout_key = share_key(model)
        return model
