"""The recurrent encoder, with the settings that all recurrent models share.

Shape legend: B sentences, S source length, R size of a state.
"""

from dataclasses import replace

from pydantic import Field, model_validator

from regardant.config import Config
from regardant.layers.recurrent import Cell, Combine, RecurrentEncoder
from regardant.models.sequence import SequenceEncoder
from regardant.models.vectors import Vectors


class StateEncoder(SequenceEncoder, RecurrentEncoder):
    """Recurrent encoder over vectors. It returns the states of all elements, and the last state of every layer."""

    def forward(self, x: Vectors) -> Vectors:
        """Return the states [B, S, R] of all elements. Padding is not read."""
        states, last = self.read(x.values, x.real)
        return replace(x, values=states, state=last)


class RecurrentStackConfig(Config):
    """The part of a recurrent model's configuration that its encoder is built from."""

    cell: Cell = "gru"
    """The kind of recurrence."""

    embedding_size: int = Field(128, gt=0)
    """Size of an element's vector."""

    hidden_size: int = Field(256, gt=0)
    """Size of a state, both directions together."""

    num_layers: int = Field(1, gt=0, le=1000)
    """Number of layers."""

    bidirectional: bool = True
    """Read in both directions."""

    combine: Combine = "concatenate"
    """Combination of both directions: concatenate (hidden_size / 2 each) or add (hidden_size each)."""

    dropout: float = Field(0.3, ge=0, lt=1)
    """Probability that a value is zeroed: of embeddings, between layers, before the output of a decoder."""

    @model_validator(mode="after")
    def directions_share(self) -> "RecurrentStackConfig":
        """Refuse an odd hidden_size for two concatenated directions."""
        if self.bidirectional and self.combine == "concatenate" and self.hidden_size % 2:
            raise ValueError(f"hidden_size ({self.hidden_size}) is shared by two directions: make it even")
        return self

    def build_encoder(self) -> SequenceEncoder:
        """Return the recurrent encoder."""
        return self.state_encoder(self.hidden_size)

    def state_encoder(self, size: int) -> StateEncoder:
        """Return a recurrent encoder with states of `size`."""
        return StateEncoder(
            self.cell,
            self.embedding_size,
            size,
            self.num_layers,
            self.dropout,
            bidirectional=self.bidirectional,
            combine=self.combine,
        )
