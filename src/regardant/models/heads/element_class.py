"""The class of each element: its part of speech, the entity that it belongs to, the class of a node.

Devlin et al. 2019, "BERT", https://arxiv.org/abs/1810.04805, section 5.3: a word of several tokens is labelled at its
first one.

Shape legend: B batch, T elements, M d_model, C classes.
"""

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from regardant.layers.dropout import Dropout
from regardant.layers.label_smoothed_cross_entropy import label_smoothed_cross_entropy
from regardant.models.heads.base import IGNORED, Head, HeadConfig, Loss
from regardant.models.vectors import Vectors


class ElementClassConfig(HeadConfig):
    """One class for each element."""

    kind: Literal["element_class"] = "element_class"

    class_token: bool = False
    """True if the model reads a class token before the elements, such as that of a pretrained encoder. The class token
    is not labelled."""

    dropout: float = Field(0.1, ge=0, lt=1)
    """Probability that a number of an element's vector is zeroed."""

    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of the target distribution spread over all classes."""

    def build(self, d_model: int, num_outputs: int) -> "ElementClass":
        return ElementClass(self, d_model, num_outputs)


class ElementClass(Head):
    """Head that scores every class for each element."""

    def __init__(self, config: ElementClassConfig, d_model: int, num_classes: int) -> None:
        super().__init__()
        self.class_token, self.label_smoothing = config.class_token, config.label_smoothing
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(d_model, num_classes)
        self.logits = nn.Identity()  # a module, so that it can be hooked

    @property
    def reads_class_token(self) -> bool:
        return self.class_token

    def scores(self, vectors: Vectors) -> Tensor:
        """Return logits [B, T, C], without the class token."""
        values = vectors.values[:, 1:] if self.class_token else vectors.values
        logits: Tensor = self.logits(self.output(self.dropout(values)))
        return logits

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        """Return the cross-entropy of the classes [B, T]. Padding and IGNORED targets are left out."""
        if vectors.real is not None:
            targets = targets.masked_fill(~vectors.real[:, -targets.shape[1] :], IGNORED)
        targets = targets.flatten()
        logits = self.scores(vectors).flatten(0, 1)
        total, plain = label_smoothed_cross_entropy(logits, targets, self.label_smoothing, ignored=IGNORED)
        return Loss(total, plain, (targets != IGNORED).sum())
