"""Pooling of a sequence to one vector.

Shape legend: B batch, T elements, M d_model.
"""

from typing import Literal

import torch
from torch import Tensor

from regardant.models.vectors import Vectors

Pooling = Literal["mean", "max", "class_token", "first", "last"]
"""Mean or maximum of the elements' vectors; vector of a class token before them (Devlin et al. 2019;
Dosovitskiy et al. 2021); the vector of the first element, which in texts of an imported model is a class token; or that
of the last element, which stands before the padding."""


def pool(vectors: Vectors, pooling: Pooling) -> Tensor:
    """Return the vector [B, M] of each sequence. Padding is not read; the mean of padding alone is zero."""
    values, real = vectors.values, vectors.real
    if pooling in ("class_token", "first"):
        return values[:, 0]
    if pooling == "max":
        return values.amax(1) if real is None else values.masked_fill(~real[..., None], -torch.inf).amax(1)
    if pooling == "last":
        if real is None:
            return values[:, -1]
        last = real.sum(1) - 1
        return values.gather(1, last[:, None, None].expand(-1, -1, values.shape[2])).squeeze(1)
    if real is None:
        return values.mean(1)
    return (values * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp_min(1)
