"""The class of a whole sequence: its vectors are pooled into one, which is scored for every class.

Shape legend: B batch, T elements, M d_model, C classes.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regardant.layers.dropout import Dropout
from regardant.models.heads.base import Head, HeadConfig, Loss
from regardant.models.vectors import Vectors

Pooling = Literal["mean", "max", "class_token"]


class SequenceClassConfig(HeadConfig):
    """One class for the whole sequence."""

    kind: Literal["sequence_class"] = "sequence_class"

    pooling: Pooling = "mean"
    """The vector that stands for the sequence: the mean or the largest of its elements', or that of a class token
    (Devlin et al. 2019; Dosovitskiy et al. 2021)."""

    dropout: float = Field(0.1, ge=0, lt=1)
    """Chance that a number of this vector is zeroed."""

    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of the target distribution spread over all classes."""

    def build(self, d_model: int, num_outputs: int) -> "SequenceClass":
        return SequenceClass(self, d_model, num_outputs)


class SequenceClass(Head):
    """Scores every class for each sequence."""

    def __init__(self, config: SequenceClassConfig, d_model: int, num_classes: int) -> None:
        super().__init__()
        self.pooling, self.label_smoothing = config.pooling, config.label_smoothing
        self.reads_class_token = config.pooling == "class_token"
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(d_model, num_classes)
        self.logits = nn.Identity()  # a module, so that it can be hooked

    def scores(self, vectors: Vectors) -> Tensor:
        """Return logits [B, C]."""
        logits: Tensor = self.logits(self.output(self.dropout(self._pooled(vectors))))
        return logits

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        """Return the cross-entropy of the classes [B]."""
        logits = self.scores(vectors).float()
        plain = F.cross_entropy(logits, targets, reduction="sum")
        total = plain
        if self.label_smoothing:
            total = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=self.label_smoothing)
        return Loss(total, plain.detach(), torch.tensor(len(targets)))

    def _pooled(self, vectors: Vectors) -> Tensor:
        values, real = vectors.values, vectors.real
        if self.pooling == "class_token":
            return values[:, 0]
        if self.pooling == "max":
            return values.amax(1) if real is None else values.masked_fill(~real[..., None], -torch.inf).amax(1)
        if real is None:
            return values.mean(1)
        return (values * real[..., None]).sum(1) / real.sum(1, keepdim=True)
