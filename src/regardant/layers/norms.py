"""Normalisation of each token's vector, over features and never over tokens.

A class derived from `NormConfig`, with a `kind`, adds a norm. Recipes name one by its kind alone (`rms_norm`) or as a
section (`{kind: rms_norm}`).
"""

from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from regardant.config import Variants


class Norm(nn.Module):
    """Base of norms that are not PyTorch's own, by which inspection finds them."""


NORMS = (nn.LayerNorm, nn.RMSNorm, Norm)
"""Classes of all norms."""


class NormConfig(Variants):
    """Configuration of a norm."""

    kind_alone: ClassVar[bool] = True

    def build(self, size: int) -> nn.Module:
        """Return the norm of vectors of `size` features."""
        raise NotImplementedError


class LayerNormConfig(NormConfig):
    """Normalisation to mean 0 and variance 1: division by sqrt(variance + eps) (Ba et al. 2016,
    https://arxiv.org/abs/1607.06450)."""

    kind: Literal["layer_norm"] = "layer_norm"

    eps: float = Field(1e-5, gt=0)
    """Number added to the variance."""

    def build(self, size: int) -> nn.LayerNorm:
        return nn.LayerNorm(size, eps=self.eps)


class SigmaLayerNormConfig(NormConfig):
    """Normalisation to mean 0 and variance 1: division by the standard deviation + eps."""

    kind: Literal["layer_norm_sigma"] = "layer_norm_sigma"

    def build(self, size: int) -> "SigmaLayerNorm":
        return SigmaLayerNorm(size)


class RMSNormConfig(NormConfig):
    """Normalisation to mean square 1, without centring or bias (Zhang and Sennrich 2019,
    https://arxiv.org/abs/1910.07467)."""

    kind: Literal["rms_norm"] = "rms_norm"

    eps: float = Field(1e-6, gt=0)
    """Number added to the mean square."""

    def build(self, size: int) -> nn.RMSNorm:
        return nn.RMSNorm(size, eps=self.eps)


class NoNormConfig(NormConfig):
    """No norm: vectors keep their length, as in graph attention networks."""

    kind: Literal["none"] = "none"

    def build(self, size: int) -> nn.Identity:
        return nn.Identity()


class SigmaLayerNorm(Norm):
    """Layer norm as lectures write it, gain * (x - mean) / (deviation + eps) + bias, with eps outside the root.

    PyTorch divides by sqrt(variance + eps): the two differ where the deviation is small.
    """

    def __init__(self, size: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))
        self.eps = eps

    def forward(self, x: Float[Tensor, "*B M"]) -> Float[Tensor, "*B M"]:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        centred = wide - wide.mean(-1, keepdim=True)
        # A small number is added to the variance: the gradient of the deviation at 0 is NaN.
        deviation = (centred.square().mean(-1, keepdim=True) + 1e-24).sqrt()
        return (self.weight * centred / (deviation + self.eps) + self.bias).to(x.dtype)
