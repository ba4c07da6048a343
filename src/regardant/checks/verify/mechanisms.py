"""The project's own mechanisms for one head and no batch, as the lectures write them."""

import torch
from torch import Tensor

from regardant.attention import EVERYTHING, AttentionConfig, ScaledDotProduct, View


def ours(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Compute scaled dot-product attention: q [n, d], k [m, d], v [m, e] to [n, e]; mask [n, m], True = may be seen."""
    view = EVERYTHING if mask is None else View(pairs=mask[None, None])
    mixed: Tensor = ScaledDotProduct(q.shape[-1])(q[None, None], k[None, None], v[None, None], view)
    return mixed[0, 0]


def weights(config: AttentionConfig, q: Tensor, k: Tensor, view: View = EVERYTHING) -> Tensor:
    """Return the weights [n, m] of any mechanism."""
    mechanism = config.build(num_heads=1, head_size=q.shape[-1])
    return mechanism.weights(q[None, None], k[None, None], view)[0, 0]


def exactly(*rows: object) -> Tensor:
    """Return rows of numbers as a float64 tensor."""
    return torch.tensor(rows[0] if len(rows) == 1 else rows, dtype=torch.float64)


def identity(size: int) -> Tensor:
    """Return the identity as values, with which the output of attention is its weights."""
    return torch.eye(size, dtype=torch.float64)


def entropy(weights: Tensor) -> Tensor:
    """Return the entropy of each row, in nats."""
    return torch.special.entr(weights).sum(-1)
