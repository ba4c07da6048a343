"""Models that read one input at once: the Transformer encoder, and the bag of vectors that it is compared with.

Devlin et al. 2019, "BERT", https://arxiv.org/abs/1810.04805; Dosovitskiy et al. 2021, "ViT",
https://arxiv.org/abs/2010.11929.

Shape legend: B batch, T elements, M d_model.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from regardant.attention import ScaledDotProductConfig
from regardant.layers.dropout import share_key
from regardant.layers.linear import keep_rows
from regardant.layers.mixers import MixerConfig
from regardant.models.base import AttentionKind, EncoderConfig, Model
from regardant.models.heads import Head, HeadBuilder
from regardant.models.order import require_mixing_by_pairs, require_pooling_in_any_order
from regardant.models.representations import InputShape, Representation, RepresentationBuilder
from regardant.models.sequence import SequenceEncoder
from regardant.models.stacks import Encoder
from regardant.models.transformer import EncoderStackConfig, TransformerConfig, initialise
from regardant.models.vectors import Vectors
from regardant.positions import Positions
from regardant.positions.none import NoPositions


class EncoderOnly(Model):
    """Encoder of one input, with a head that scores the whole sequence or each element."""

    inputs = ("input",)

    def __init__(self, config: EncoderConfig, input: Representation, encoder: SequenceEncoder, head: Head) -> None:
        super().__init__()
        if head.compares_inputs:
            raise ValueError(f"{type(head).__name__} compares two inputs, and this model reads one: use a dual encoder")
        self.config = config
        self.input = input
        self.encoder = encoder
        self.head = head
        self.reads_order = self.reads_order and input.reads_order
        if input.grid is not None:  # all training items have as many elements
            keep_rows(encoder)

    @property
    def attention_kinds(self) -> Mapping[str, AttentionKind]:
        """Self-attention of one stack over all elements. Empty for other encoders, such as the hierarchical one."""
        if not isinstance(self.encoder, Encoder):
            return {}
        return {"encoder.self_attention": AttentionKind("input", "input")}

    def max_length(self, name: str) -> int:
        """Return the maximum number of elements of the input. A class token takes one of the encoder's positions."""
        length, places = super().max_length(name), self.encoder.longest
        return min(length, places - 1) if self.head.reads_class_token and places is not None else length

    def vectors(self, input: Any) -> Vectors:
        """Return the vectors of all elements after the last layer."""
        vectors: Vectors = self.encoder(self.input(input))
        return vectors


class EncoderOnlyConfig(TransformerConfig, EncoderConfig):
    """The Transformer encoder and all its settings."""

    kind: Literal["encoder_only"] = "encoder_only"

    most_keys: ClassVar[str] = "max_length"
    """Field with the maximum number of elements that attend to each other."""

    num_layers: int = Field(4, gt=0, le=1000)
    """Number of layers."""

    self_attention: MixerConfig = ScaledDotProductConfig()
    """Self-attention among the elements; or a convolution, or a dense layer over positions."""

    tie_embeddings: bool = False
    """True if input and output share one matrix, for a head that scores the words of the input's vocabulary."""

    @model_validator(mode="after")
    def positions_leave_room(self) -> Self:
        """Refuse concatenated positions that leave too few dimensions to the embedding."""
        self.require_room_beside_positions(self.max_length, tied=self.tie_embeddings)
        return self

    def build(self, representation: RepresentationBuilder, head: HeadBuilder) -> EncoderOnly:
        positions = self.build_positions(self.max_length, causal=False)
        answers = head(self.d_model)
        stack = EncoderStackConfig(num_layers=self.num_layers, self_attention=self.self_attention)
        model = EncoderOnly(
            self,
            representation(self.input_shape(positions, class_token=answers.reads_class_token)),
            self.build_encoder(stack, positions),
            answers,
        )
        initialise(model)
        if self.tie_embeddings:
            model.tie("input", instead="false")
        model.check_lengths(self.most_keys)
        if not model.reads_order:
            self.require_any_order(model)
        model.dropout_key = share_key(model)
        return model

    def build_encoder(self, stack: EncoderStackConfig, positions: Positions) -> SequenceEncoder:
        """Return the stack over the elements."""
        return Encoder(self, stack, positions, self.max_length)

    def require_any_order(self, model: EncoderOnly) -> None:
        """Raise ValueError if the model depends on the order of elements, for elements without an order."""
        require_mixing_by_pairs(model.encoder, model.input, self.self_attention, self.feed_forward)
        require_pooling_in_any_order(model.head, model.input)


class NoMixing(SequenceEncoder):
    """Encoder that returns every vector unchanged."""

    def forward(self, x: Vectors) -> Vectors:
        return x


class BagOfVectorsConfig(EncoderConfig):
    """Bag of vectors: the head reads the elements without a sequence model. The baseline of every encoder."""

    kind: Literal["bag"] = "bag"

    d_model: int = Field(128, gt=0)
    """Size of an element's vector."""

    dropout: float = Field(0.3, ge=0, lt=1)
    """Probability that a value is zeroed."""

    def build(self, representation: RepresentationBuilder, head: HeadBuilder) -> EncoderOnly:
        answers = head(self.d_model)
        if (vector := answers.single_vector) is not None:
            raise ValueError(
                f"a bag of vectors mixes nothing into {vector}, which the head reads: choose another head (such as one "
                "of pooling mean) or another model"
            )
        inputs = InputShape(self.d_model, NoPositions(), dropout=self.dropout)
        model = EncoderOnly(self, representation(inputs), NoMixing(), answers)
        model.reads_order = answers.reads_order
        model.dropout_key = share_key(model)
        return model
