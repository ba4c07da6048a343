"""Two encoders for two inputs, each of which becomes one vector, and a head that compares the vectors.

Radford et al. 2021 (CLIP), https://arxiv.org/abs/2103.00020: images and texts; Reimers and Gurevych 2019
("Sentence-BERT"), https://arxiv.org/abs/1908.10084: sentences. Each input is encoded independently of the other, so the
vectors of a collection are computed once.

Shape legend: B batch, S size of the vectors that are compared.
"""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regardant.layers.dropout import share_key
from regardant.models.base import AttentionKind, EncoderConfig, MatchingConfig, Model
from regardant.models.encoder_only import EncoderOnlyConfig
from regardant.models.heads import Head, HeadBuilder, Pooling, pool
from regardant.models.representations import Representation, RepresentationBuilder
from regardant.models.vectors import Vectors


class SequenceVector(Head):
    """Head that pools and projects a sequence to one vector. The loss is that of the dual encoder's head."""

    def __init__(self, d_model: int, size: int, pooling: Pooling) -> None:
        super().__init__()
        self.pooling: Pooling = pooling
        self.projection = nn.Linear(d_model, size, bias=False)

    def scores(self, vectors: Vectors) -> Tensor:
        """Return the vectors [B, S]."""
        projected: Tensor = self.projection(pool(vectors, self.pooling))
        return projected


class DualEncoder(Model):
    """Two models of one input each, and the head that compares their vectors."""

    inputs = ("first", "second")

    def __init__(self, config: "DualEncoderConfig", first: Model, second: Model, head: Head) -> None:
        super().__init__()
        if not head.compares_inputs:
            raise ValueError(
                f"a dual encoder compares two inputs, which {type(head).__name__} does not: use head match"
            )
        self.config = config
        self.first, self.second = first, second
        self.head = head
        self.reads_order = first.reads_order or second.reads_order

    @property
    def attention_kinds(self) -> Mapping[str, AttentionKind]:
        return {
            f"{name}.{kind}": AttentionKind(name, name, sides.causal)
            for name in self.inputs
            for kind, sides in self.tower(name).attention_kinds.items()
        }

    def tower(self, name: str) -> Model:
        """Return the encoder of an input. Its `scores` are the vectors [B, S] of items, for retrieval."""
        tower = self.get_submodule(name)
        assert isinstance(tower, Model)
        return tower

    def representation(self, name: str) -> Representation:
        return self.tower(name).representation("input")

    def max_length(self, name: str) -> int:
        return self.tower(name).max_length("input")

    def vectors(self, first: Any, second: Any) -> Vectors:
        """Return one vector for each of the two inputs, [B, 2, S]."""
        return Vectors(torch.stack([self.first.scores(input=first), self.second.scores(input=second)], 1))


class DualEncoderConfig(MatchingConfig):
    """Two encoders, of any kind each, whose vectors are compared."""

    kind: Literal["dual_encoder"] = "dual_encoder"

    first: EncoderConfig = EncoderOnlyConfig()
    """The encoder of the first input."""

    second: EncoderConfig = EncoderOnlyConfig()
    """The encoder of the second input."""

    pooling: Pooling = "mean"
    """The vector of a sequence: `mean` or `max` of its elements' vectors, that of a `class_token` before them, or that
    of the `first` or `last` element."""

    size: int = Field(128, gt=0)
    """Size of the vectors that are compared."""

    def build(self, first: RepresentationBuilder, second: RepresentationBuilder, head: HeadBuilder) -> DualEncoder:
        def vector(d_model: int) -> SequenceVector:
            return SequenceVector(d_model, self.size, self.pooling)

        model = DualEncoder(self, self.first.build(first, vector), self.second.build(second, vector), head(self.size))
        model.dropout_key = share_key(model)
        return model
