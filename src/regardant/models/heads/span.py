"""A span of the sequence, such as the answer to a question: the elements at which it starts and ends.

Devlin et al. 2019, "BERT", https://arxiv.org/abs/1810.04805, sections 4.2 (start and end vectors) and 4.3 (no answer is
the span of the class token).

Shape legend: B batch, T elements with the class token, M d_model.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regardant.models.heads.base import IGNORED, Head, HeadConfig, Loss
from regardant.models.vectors import Vectors


class SpanConfig(HeadConfig):
    """The first and the last element of a span."""

    kind: Literal["span"] = "span"

    no_answer: bool = False
    """True if there may be no span. A class token then precedes the elements as number 0, and the span from 0 to 0
    means no answer."""

    def build(self, d_model: int, num_outputs: int) -> "Span":
        """Return the head; it has two scores for each element, whatever `num_outputs` is."""
        return Span(self, d_model)


class Span(Head):
    """Head that scores every element as the first and as the last one of the span."""

    threshold: Tensor
    """Margin in nats by which the score of a span must exceed that of no answer (section 4.3). A scalar that is saved
    with the weights; only heads with `no_answer` have one."""

    def __init__(self, config: SpanConfig, d_model: int) -> None:
        super().__init__()
        self.no_answer = config.no_answer
        self.output = nn.Linear(d_model, 2)
        if config.no_answer:
            self.register_buffer("threshold", torch.zeros(()))

    @property
    def reads_class_token(self) -> bool:
        return self.no_answer

    def scores(self, vectors: Vectors) -> Tensor:
        """Return the logits of start and end [B, T, 2], to be normalised over T: minus infinity at padding."""
        logits: Tensor = self.output(vectors.values)
        return logits if vectors.real is None else logits.masked_fill(~vectors.real[..., None], -torch.inf)

    def loss(self, vectors: Vectors, targets: Tensor) -> Loss:
        """Return the cross-entropy of starts and ends [B, 2], summed. A span counts once.

        A span with an IGNORED end, such as one that was cut off, is left out.
        """
        ignored = (targets == IGNORED).any(1)
        targets = targets.masked_fill(ignored[:, None], IGNORED)
        total = F.cross_entropy(self.scores(vectors).float(), targets, ignore_index=IGNORED, reduction="sum")
        return Loss(total, total.detach(), (~ignored).sum())
