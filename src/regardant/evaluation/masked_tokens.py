"""Scores of a model that predicts masked tokens.

Shape legend: N masked tokens.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F

from regardant.data.vocabulary import PAD
from regardant.models import Model, Vectors


@dataclass(frozen=True)
class MaskedTokenScores:
    """Scores over all masked tokens of a set."""

    loss: float
    """Mean cross-entropy, in nats per masked token."""
    perplexity: float
    """Exponential of the loss. The exponent is capped at 50 nats."""
    accuracy: float
    """Share of masked tokens whose likeliest prediction is right."""
    tokens: int
    """Number of masked tokens."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        return asdict(self)


def score_masked_tokens(model: Model, batches: Iterable[Any], device: torch.device) -> MaskedTokenScores:
    """Score batches with `inputs` and `targets` [B, T], PAD where nothing is masked.

    The model must be in evaluation mode. Logits are computed at masked tokens alone, N of a batch.
    """
    nats, right, count = 0.0, 0, 0
    with torch.inference_mode():
        for batch in (one.to(device) for one in batches):
            masked = batch.targets != PAD
            targets = batch.targets[masked]
            vectors = model.vectors(**batch.inputs).values[masked]
            logits = model.head.scores(Vectors(vectors[None]))[0].float()
            nats += float(F.cross_entropy(logits, targets, reduction="sum"))
            right += int((logits.argmax(1) == targets).sum())
            count += len(targets)
    loss = nats / count
    return MaskedTokenScores(loss, math.exp(min(loss, 50.0)), right / count, count)
