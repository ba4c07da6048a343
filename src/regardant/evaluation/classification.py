"""Scores of a classifier.

Shape legend: N items, C classes.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class ClassificationScores:
    """Accuracy and F1 of the likeliest class, and the loss of its probabilities."""

    accuracy: float
    macro_f1: float
    """Mean over classes of F1; a class that neither occurs nor is predicted is left out."""
    loss: float
    """Mean cross-entropy, in nats per label."""
    interval: tuple[float, float]
    """95 % interval of the accuracy (Wilson's score interval)."""
    items: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        return asdict(self)


def score_classes(answers: Sequence[tuple[Tensor, Tensor]]) -> ClassificationScores:
    """Score logits [N, C] against classes [N], batch by batch."""
    logits = torch.cat([scores for scores, _ in answers])
    targets = torch.cat([given for _, given in answers])
    predicted, count = logits.argmax(1), len(targets)
    right = int((predicted == targets).sum())
    return ClassificationScores(
        accuracy=right / count,
        macro_f1=_macro_f1(predicted, targets, logits.shape[1]),
        loss=float(F.cross_entropy(logits, targets)),
        interval=_wilson(right, count),
        items=count,
    )


def _macro_f1(predicted: Tensor, targets: Tensor, num_classes: int) -> float:
    both = torch.bincount(targets[predicted == targets], minlength=num_classes)
    either = torch.bincount(predicted, minlength=num_classes) + torch.bincount(targets, minlength=num_classes)
    seen = either > 0
    return float((2 * both[seen] / either[seen]).mean())


def _wilson(right: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's score interval of a share.

    Wilson 1927, "Probable inference, the law of succession, and statistical inference".
    """
    share, spread = right / count, z * z / count
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    # The bound of a share of 0 or 1 is exactly 0 or 1, which rounding misses.
    return max(0.0, middle - half), min(1.0, middle + half)
