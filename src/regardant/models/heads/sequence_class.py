"""The class of a whole sequence: its vectors are pooled into one, which is scored for every class.

Shape legend: B batch, T elements, M d_model, C classes.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regardant.layers.dropout import Dropout
from regardant.layers.label_smoothed_cross_entropy import label_smoothed_cross_entropy
from regardant.models.heads.base import Head, HeadConfig, Loss
from regardant.models.heads.pooling import Pooling, pool
from regardant.models.vectors import Vectors


class SequenceClassConfig(HeadConfig):
    """One class for the whole sequence."""

    kind: Literal["sequence_class"] = "sequence_class"

    pooling: Pooling = "mean"
    """The vector of the sequence: `mean` or `max` of its elements' vectors, that of a `class_token` before them, or
    that of the `first` or `last` element."""

    transform: bool = False
    """True if a dense layer and tanh precede the output layer (BERT's pooler)."""

    dropout: float = Field(0.1, ge=0, lt=1)
    """Probability that a number of the sequence's vector is zeroed."""

    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of the target distribution spread over all classes."""

    def build(self, d_model: int, num_outputs: int) -> "SequenceClass":
        return SequenceClass(self, d_model, num_outputs)


class SequenceClass(Head):
    """Head that scores every class for each sequence."""

    def __init__(self, config: SequenceClassConfig, d_model: int, num_classes: int) -> None:
        super().__init__()
        self.pooling: Pooling = config.pooling
        self.label_smoothing = config.label_smoothing
        self.transform = nn.Sequential(nn.Linear(d_model, d_model), nn.Tanh()) if config.transform else nn.Identity()
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(d_model, num_classes)
        self.logits = nn.Identity()  # a module, so that it can be hooked

    def scores(self, vectors: Vectors) -> Tensor:
        """Return logits [B, C]."""
        logits: Tensor = self.logits(self.output(self.dropout(self.transform(pool(vectors, self.pooling)))))
        return logits

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        """Return the cross-entropy of the classes [B]."""
        total, plain = label_smoothed_cross_entropy(self.scores(vectors), targets, self.label_smoothing)
        return Loss(total, plain, torch.tensor(len(targets)))
