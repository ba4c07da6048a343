"""The recurrent encoder-decoder: reads a source into states, writes a target from them.

Shape legend: B sentences, S source length, R size of a state.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from regardant.layers.dropout import share_key
from regardant.layers.linear import Linear
from regardant.layers.recurrent import Cell
from regardant.models.base import AttentionKind, SequenceToSequenceConfig
from regardant.models.encoder_decoder import EncoderDecoder, Tied
from regardant.models.heads import HeadBuilder
from regardant.models.heads.pooling import pool
from regardant.models.order import require_keys_in_any_order
from regardant.models.recurrent.decoders import BahdanauConfig, RecurrentDecoderConfig, RecurrentShape
from regardant.models.recurrent.encoder import RecurrentStackConfig
from regardant.models.representations import InputShape, RepresentationBuilder
from regardant.models.sequence import SequenceEncoder
from regardant.models.vectors import Vectors
from regardant.positions import Positions, PositionsConfig
from regardant.positions.none import NoneConfig, NoPositions


class AnnotationEncoder(SequenceEncoder):
    """Encoder that returns the source's vectors unchanged, and from their mean the first state of `num_layers` layers.

    Xu et al. 2015, "Show, attend and tell", https://arxiv.org/abs/1502.03044, section 3.1.2: here one linear map of the
    mean for each part of the state, and the decoder's tanh.
    """

    def __init__(self, cell: Cell, size: int, num_layers: int) -> None:
        super().__init__()
        self.parts = 2 if cell == "lstm" else 1
        self.num_layers = num_layers
        self.first = Linear(size, self.parts * size)

    def forward(self, x: Vectors) -> Vectors:
        """Return the vectors [B, S, R], and the first state of every layer. The mean is without padding."""
        parts = self.first(pool(x, "mean")).chunk(self.parts, -1)
        return replace(x, state=tuple(part.expand(self.num_layers, -1, -1) for part in parts))


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


class RecurrentConfig(RecurrentStackConfig, SequenceToSequenceConfig):
    """A recurrent encoder and a recurrent decoder."""

    kind: Literal["recurrent"] = "recurrent"

    encoder: Literal["recurrent", "none"] = "recurrent"
    """The recurrent encoder, or none: the decoder reads the vectors of the source's elements and begins with their mean
    (Xu et al. 2015)."""

    positions: PositionsConfig = NoneConfig()
    """Positions of the source's elements, which a decoder without an encoder needs to read them in order."""

    hidden_size: int = Field(256, gt=0)
    """Size of a state, and of the vector that the encoder gives for each token; without an encoder, of the
    source's vectors."""

    encoder_size: int | None = Field(None, gt=0)
    """Size of an encoder's state, where it differs from hidden_size. Luong's decoder then needs `general` attention."""

    num_layers: int = Field(1, gt=0, le=1000)
    """Layers of the encoder, and of the decoder."""

    decoder: RecurrentDecoderConfig = BahdanauConfig()
    """Decoder. Its kind determines how the decoder reads the source."""

    bptt: int | None = Field(None, gt=0)
    """Target tokens that gradients go back (truncated back-propagation through time). Empty: all."""

    encoder_bptt: int | None = Field(None, gt=0)
    """Source tokens that gradients go back in an encoder of one direction. Empty: all."""

    tie_embeddings: Tied = "all"
    """Weight tying. all: source, target and output share one matrix, which needs a joint vocabulary. target: target and
    output share one. none: they have three."""

    @model_validator(mode="after")
    def encoder_has_settings(self) -> "RecurrentConfig":
        """Refuse an odd encoder_size for two concatenated directions, and settings of an encoder without one."""
        if self.encoder_size and self.bidirectional and self.combine == "concatenate" and self.encoder_size % 2:
            raise ValueError(f"encoder_size ({self.encoder_size}) is shared by two directions: make it even")
        if self.encoder_size and self.encoder == "none":
            raise ValueError("without an encoder the source's vectors have hidden_size numbers: leave out encoder_size")
        for name in ("bidirectional", "combine", "encoder_bptt"):
            if self.encoder == "none" and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"without an encoder {name} has no effect: leave it out")
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
        size = self.embedding_size if self.encoder == "recurrent" else self.hidden_size
        model = RecurrentEncoderDecoder(
            self,
            source(InputShape(size, self._source_positions(size), dropout=self.dropout)),
            target(InputShape(self.embedding_size, NoPositions(), dropout=self.dropout)),
            self.build_encoder(),
            self.decoder.build(self.shape),
            head(self.embedding_size),
        )
        model.tie_embeddings(self.tie_embeddings)
        model.check_lengths()
        if not model.source.reads_order:
            self._require_any_order(model)
        model.dropout_key = share_key(model)
        return model

    def _require_any_order(self, model: RecurrentEncoderDecoder) -> None:
        """Raise ValueError if the model depends on the order of source elements, which have none."""
        if self.encoder == "recurrent":
            raise ValueError(
                f"a recurrent network reads elements in order, and a {model.source.unit} has none: set "
                "model.kind=encoder_decoder, or model.encoder=none, which reads elements without their edges"
            )
        require_keys_in_any_order(model.decoder, model.source)

    def build_encoder(self) -> SequenceEncoder:
        """Return the recurrent encoder, or the one that returns the source's vectors unchanged."""
        if self.encoder == "none":
            return AnnotationEncoder(self.cell, self.hidden_size, self.num_layers)
        encoder = self.state_encoder(self.shape.source_size)
        encoder.truncate(self.encoder_bptt)
        return encoder

    def _source_positions(self, size: int) -> Positions:
        width = self.positions.width(size, self.max_length)
        if width >= size:
            name = "embedding_size" if self.encoder == "recurrent" else "hidden_size"
            raise ValueError(
                f"positions of {width} numbers leave none of {name} ({size}) to the token: raise {name}, or lower "
                "max_length or positions.size"
            )
        positions = self.positions.build(
            d_model=size, num_heads=1, head_size=size, max_length=self.max_length, causal=False
        )
        if positions.acts_on not in ("input", "nowhere"):
            raise ValueError(
                f"positions {self.positions.kind} act inside self-attention, which a recurrent model lacks: choose "
                "sinusoidal, learned or two_dimensional"
            )
        return positions
