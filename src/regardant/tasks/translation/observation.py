"""What a translator's heads do while it is trained, seen on a few fixed sentences.

Shape legend: B sentences, H heads, Q queries, K keys.
"""

import math

import torch
from torch import Tensor

from regardant.data.batching import PairBatch
from regardant.data.vocabulary import PAD
from regardant.inspection import capture, place_names
from regardant.inspection.places import kind_of
from regardant.models import SequenceToSequenceModel

PROBED = 16
"""Sentences whose attention is looked at. Their pass costs a few thousandths of a validation's decoding."""

SAMPLES = 5
"""Sentences whose translations are kept."""


def entropy_of_heads(model: SequenceToSequenceModel, batch: PairBatch) -> dict[str, list[list[float | None]]]:
    """Of every kind of attention, layer and head: the mean entropy of a real query's weights, in nats.

    0: it looks at one token; log K: at K alike. What is negative counts as nothing, and rows are divided by their sums.
    None where a weight is not finite. Empty for a model without attention.
    """
    if not any(name.endswith(".weights") for name in place_names(model)):
        return {}
    read, writing = batch.source != PAD, batch.target[:, 1:] != PAD  # a short target's EOS is not asked from
    with capture(model, "*.weights") as records:
        model.scores(batch.source, batch.target[:, :-1])
    found: dict[str, list[list[float | None]]] = {}
    for place in records:
        kind = kind_of(place.removesuffix(".weights"))
        real = (read if kind.startswith("encoder") else writing).cpu()
        found.setdefault(kind, []).append(_entropy(records.whole(place), real))
    return found


def _entropy(weights: Tensor, real: Tensor) -> list[float | None]:
    """Of each head, from weights [B, H, Q, K] and which queries are no padding [B, Q]."""
    shares = weights.clamp(min=0)
    shares = shares / shares.sum(-1, keepdim=True).clamp(min=torch.finfo(shares.dtype).tiny)
    entropy = torch.special.entr(shares).sum(-1).transpose(1, 2)[real]  # [queries, H]
    return [round(one, 4) if math.isfinite(one) else None for one in entropy.mean(0).tolist()]
