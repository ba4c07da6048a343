"""The entropy of heads while a model is trained, on a few fixed items.

Shape legend: B items, H heads, Q queries, K keys.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regardant.inspection import attention_places, capture, real_elements
from regardant.models import Model

PROBED = 16
"""Number of items whose attention is recorded. Reading them costs a few thousandths of a validation with decoding."""

SAMPLES = 5
"""Number of items whose generated texts are kept."""


def entropy_of_heads(model: Model, inputs: Mapping[str, Any]) -> dict[str, list[list[float | None]]]:
    """Return the mean entropy of a real query's weights, in nats, by kind of attention, layer and head.

    0: all weight is on one element; log K: equal weights on K elements. Negative weights count as zero, and rows are
    divided by their sums. None where a weight is not finite. Empty for a model without attention.
    """
    kinds = attention_places(model)
    if not kinds:
        return {}
    with capture(model, "*.weights") as records:
        model.scores(**inputs)
    found: dict[str, list[list[float | None]]] = {}
    for kind, places in kinds.items():
        asking = model.attention_kinds[kind].queries
        real = real_elements(model, asking, inputs[asking])
        found[kind] = [_entropy(records.whole(f"{place}.weights"), real) for place in places]
    return found


def _entropy(weights: Tensor, real: Tensor) -> list[float | None]:
    """Return the entropy of each head, from weights [B, H, Q, K] and the mask of real queries [B, Q]."""
    shares = weights.clamp(min=0)
    shares = shares / shares.sum(-1, keepdim=True).clamp(min=torch.finfo(shares.dtype).tiny)
    entropy = torch.special.entr(shares).sum(-1).transpose(1, 2)[real]  # [queries, H]
    return [round(one, 4) if math.isfinite(one) else None for one in entropy.mean(0).tolist()]
