"""Positions that an output depends on, and the effect of their order, measured on any function of vectors.

Shape legend: B batch, T positions, M size of a vector.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Layer = Callable[[Tensor], Tensor]
"""Vectors [B, T, M] to vectors [B, T, N]: a module, or part of a model."""


def reached(layer: Layer, x: Float[Tensor, "B T M"], position: int) -> Bool[Tensor, " T"]:
    """Return the positions whose input the output at `position` depends on, by its gradient."""
    with torch.enable_grad():
        x = x.detach().clone().requires_grad_()
        output = layer(x)[:, position]
        direction = torch.randn(output.shape[-1:], generator=torch.Generator().manual_seed(0)).to(output)
        (gradient,) = torch.autograd.grad((output * direction).sum(), x)
    return gradient.abs().amax((0, 2)) > 0


def equivariance_error(layer: Layer, x: Float[Tensor, "B T M"], order: Int[Tensor, " T"]) -> float:
    """Return how far layer(x in another order) is from layer(x) in that order, relative to layer(x).

    0: the layer is permutation-equivariant, as self-attention without positions and any network of each position.
    """
    with torch.no_grad():
        plain = layer(x)
        return float((layer(x[:, order]) - plain[:, order]).norm() / plain.norm())


def invariance_error(layer: Layer, x: Float[Tensor, "B T M"], order: Int[Tensor, " T"]) -> float:
    """Return how far layer(x in another order) is from layer(x), relative to layer(x).

    0: the order does not count, as for the mean of all positions.
    """
    with torch.no_grad():
        plain = layer(x)
        return float((layer(x[:, order]) - plain).norm() / plain.norm())
