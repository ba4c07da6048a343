"""The vector of a whole sentence, to be compared by cosine.

Reimers and Gurevych 2019, "Sentence-BERT", https://arxiv.org/abs/1908.10084, section 3.

Shape legend: B batch, M d_model.
"""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from regardant.models.heads.base import Head, HeadConfig, Loss
from regardant.models.heads.pooling import Pooling, pool
from regardant.models.vectors import Vectors


class SentenceVectorConfig(HeadConfig):
    """One unit vector for the whole sentence."""

    kind: Literal["sentence_vector"] = "sentence_vector"

    pooling: Pooling = "mean"
    """The vector of the sentence: `mean` or `max` of its elements' vectors, that of a `class_token` before them, or
    that of the `first` or `last` element."""

    def build(self, d_model: int, num_outputs: int) -> "SentenceVector":
        """Return the head; it has no weights."""
        return SentenceVector(self.pooling)


class SentenceVector(Head):
    """Head that pools the vectors of a sentence. It has no loss: its model is imported."""

    def __init__(self, pooling: Pooling) -> None:
        super().__init__()
        self.pooling: Pooling = pooling

    def scores(self, vectors: Vectors) -> Tensor:
        """Return unit vectors [B, M]."""
        return F.normalize(pool(vectors, self.pooling), dim=-1)

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        """Raise ValueError: vectors have no targets."""
        raise ValueError("the vector of a sentence has no target, and so no loss")
