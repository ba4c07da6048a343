"""A model of items with two parts: the query part attends to the other by cross-attention.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.2.3, with a source of another kind than the queries, as
in Tsai et al. 2019, "Multimodal Transformer for Unaligned Multimodal Language Sequences",
https://arxiv.org/abs/1906.00295, section 3.1: neither lengths nor order of the two need agree.

Shape legend: B batch, T elements of the query part, M d_model.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from regardant.attention import AttentionConfig, ScaledDotProductConfig
from regardant.layers.dropout import share_key
from regardant.layers.mixers import MixerConfig
from regardant.models.base import AttentionKind, EncoderConfig, Model
from regardant.models.heads import Head, HeadBuilder
from regardant.models.representations import JoinedBuilder, Representation, RepresentationBuilder
from regardant.models.sequence import SequenceDecoder, SequenceEncoder
from regardant.models.stacks import Decoder, Encoder
from regardant.models.transformer import EncoderStackConfig, TransformerConfig, initialise
from regardant.models.vectors import Vectors


class Cross(Model):
    """Model of one part of an item with the other as its memory. The head reads the vectors of the query part.

    Raises:
        ValueError: a part has the name of an attribute of the model, or the head compares two inputs.
    """

    def __init__(
        self,
        config: "CrossConfig",
        parts: Mapping[str, Representation],
        memory: SequenceEncoder | None,
        encoder: SequenceDecoder,
        head: Head,
    ) -> None:
        super().__init__()
        if head.compares_inputs:
            raise ValueError(f"{type(head).__name__} compares two vectors, and this model has one: use a dual encoder")
        self.inputs = tuple(parts)  # type: ignore[misc]  # a constant in other models
        self.config = config
        self.memory = memory
        self.encoder = encoder
        self.head = head
        for name, part in parts.items():
            if hasattr(self, name):
                raise ValueError(f"kind cross has a {name} of its own: give that part of the items another name")
            self.add_module(name, part)

    @property
    def attention_kinds(self) -> Mapping[str, AttentionKind]:
        asking, asked = self.inputs
        return {
            "memory.self_attention": AttentionKind(asked, asked),
            "encoder.self_attention": AttentionKind(asking, asking),
            "encoder.cross_attention": AttentionKind(asking, asked),
        }

    def vectors(self, **inputs: Any) -> Vectors:
        """Return the vectors of the query part [B, T, M], given the inputs of both parts by name."""
        asking, asked = (self.representation(name)(inputs[name]) for name in self.inputs)
        if self.memory is not None:
            asked = self.memory(asked)
        vectors: Vectors = self.encoder(asking, asked)
        return vectors


class CrossConfig(TransformerConfig, EncoderConfig):
    """A Transformer over one part of an item, with cross-attention to the other part (input.kind joined)."""

    kind: Literal["cross"] = "cross"

    queries: str | None = None
    """Name of the query part, whose vectors the head reads. Empty: the first part. The other gives keys and values."""

    num_layers: int = Field(2, gt=0, le=1000)
    """Number of layers over the query part: self-attention, cross-attention, feed-forward."""

    self_attention: MixerConfig = ScaledDotProductConfig()
    """Self-attention among the elements of the query part."""

    cross_attention: AttentionConfig = ScaledDotProductConfig()
    """Attention from the query part to the other part."""

    memory: EncoderStackConfig | None = EncoderStackConfig(num_layers=1)
    """The stack over the other part. null: the cross-attention reads the representation itself."""

    @model_validator(mode="after")
    def positions_leave_room(self) -> "CrossConfig":
        """Refuse concatenated positions that leave too few dimensions to the embedding."""
        self.require_room_beside_positions(self.max_length, tied=False)
        return self

    def build(self, representation: RepresentationBuilder, head: HeadBuilder) -> Cross:
        asking, asked = self._parts(representation)
        answers = head(self.d_model)
        of_asking, of_asked = (self.build_positions(self.max_length, causal=False) for _ in range(2))
        built = {
            asking[0]: asking[1](self.input_shape(of_asking, class_token=answers.reads_class_token)),
            asked[0]: asked[1](self.input_shape(of_asked)),
        }
        memory = None if self.memory is None else Encoder(self, self.memory, of_asked, self.max_length)
        encoder = Decoder(
            self,
            self.num_layers,
            self.self_attention,
            self.cross_attention,
            of_asking,
            self.max_length,
            causal=False,
        )
        model = Cross(self, built, memory, encoder, answers)
        initialise(model)
        model.check_lengths()
        model.dropout_key = share_key(model)
        return model

    def _parts(self, representation: RepresentationBuilder) -> list[tuple[str, RepresentationBuilder]]:
        """Return names and builders of the two parts, the query part first. Raises ValueError if there are not two."""
        parts = dict(representation.parts) if isinstance(representation, JoinedBuilder) else {}
        if len(parts) != 2:
            raise ValueError(
                f"kind cross reads items of two parts, and these have {len(parts) or 'none'}: set input.kind=joined "
                "with two parts, or choose another model"
            )
        queries = next(iter(parts)) if self.queries is None else self.queries
        if queries not in parts:
            raise ValueError(f"queries: given {queries!r}; allowed: {', '.join(parts)}")
        return [(queries, parts.pop(queries)), *parts.items()]
