"""Normalisation of a token's numbers, over features and never over tokens."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

Normalisation = Literal["layer_norm", "layer_norm_sigma", "rms_norm"]


class SigmaLayerNorm(nn.Module):
    """gain * (x - mean) / (deviation + eps) + bias: layer norm as lectures write it, eps beside the deviation.

    The usual form (Ba et al. 2016, https://arxiv.org/abs/1607.06450, as PyTorch has it) divides by
    sqrt(variance + eps): the two differ where the deviation is small.
    """

    def __init__(self, size: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))
        self.eps = eps

    def forward(self, x: Float[Tensor, "*B M"]) -> Float[Tensor, "*B M"]:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        centred = wide - wide.mean(-1, keepdim=True)
        # Of the variance and not of the deviation itself, whose gradient at 0 is not a number.
        deviation = (centred.square().mean(-1, keepdim=True) + 1e-24).sqrt()
        return (self.weight * centred / (deviation + self.eps) + self.bias).to(x.dtype)


def build_norm(kind: Normalisation, size: int) -> nn.Module:
    """rms_norm leaves out the mean and the bias (Zhang and Sennrich 2019, https://arxiv.org/abs/1910.07467)."""
    if kind == "layer_norm":
        return nn.LayerNorm(size)
    return SigmaLayerNorm(size) if kind == "layer_norm_sigma" else nn.RMSNorm(size, eps=1e-6)
