"""Positions that an output depends on, and the effect of their order, measured on any function of vectors.

Shape legend: B batch, T positions, M size of a vector.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Layer = Callable[[Tensor], Tensor]
"""Function from vectors [B, T, M] to vectors [B, T, N]: a module, or part of a model."""


def reached(layer: Layer, x: Float[Tensor, "B T M"], position: int) -> Bool[Tensor, " T"]:
    """Return a mask of the positions on whose input the output at `position` depends, by its gradient."""
    with torch.enable_grad():
        x = x.detach().clone().requires_grad_()
        output = layer(x)[:, position]
        direction = torch.randn(output.shape[-1:], generator=torch.Generator().manual_seed(0)).to(output)
        (gradient,) = torch.autograd.grad((output * direction).sum(), x)
    return gradient.abs().amax((0, 2)) > 0


def equivariance_error(layer: Layer, x: Float[Tensor, "B T M"], order: Int[Tensor, " T"]) -> float:
    """Return |layer(x[order]) - layer(x)[order]| / |layer(x)|.

    0: the layer is permutation-equivariant, as self-attention without positions and position-wise networks are.
    """
    with torch.no_grad():
        plain = layer(x)
        return float((layer(x[:, order]) - plain[:, order]).norm() / plain.norm())


def invariance_error(layer: Layer, x: Float[Tensor, "B T M"], order: Int[Tensor, " T"]) -> float:
    """Return |layer(x[order]) - layer(x)| / |layer(x)|.

    0: the order has no effect, as for the mean over all positions.
    """
    with torch.no_grad():
        plain = layer(x)
        return float((layer(x[:, order]) - plain).norm() / plain.norm())
