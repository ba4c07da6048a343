"""Sinusoidal positions: PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(p / 10000^(2i/d)), i from 0.

Vaswani et al. 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section 3.5.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regardant.positions.base import InputConfig, TabulatedPositions


class SinusoidalConfig(InputConfig):
    """Sinusoids of d_model/2 wavelengths from 2 pi to almost 10000 * 2 pi; defined for any length."""

    kind: Literal["sinusoidal"] = "sinusoidal"

    first: Literal[0, 1] = 0
    """Index i of the shortest wave. 1 leaves out the wave of 2 pi and ends with the one of 10000 * 2 pi."""

    layout: Literal["interleaved", "halves"] = "interleaved"
    """Order of features: sine and cosine of a wave side by side, or all sines before all cosines, as in Marian."""

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> "Sinusoidal":
        return Sinusoidal(self, d_model, max_length)


class Sinusoidal(TabulatedPositions):
    """Sinusoids in the configured layout."""

    acts_on = "input"

    def __init__(self, config: SinusoidalConfig, d_model: int, max_length: int) -> None:
        super().__init__()
        self.concatenated = config.width(d_model, max_length)
        self.size, self.config = self.concatenated or d_model, config
        self.reach(max_length)

    def codes(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T P"]:
        waves = sinusoids(positions, self.size, self.config.first)
        return waves if self.config.layout == "interleaved" else torch.cat([waves[:, ::2], waves[:, 1::2]], 1)

    def embed(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T P"]:
        return self.table[positions]


def sinusoids(positions: Int[Tensor, " T"], size: int, first: int = 0) -> Float[Tensor, "T P"]:
    """Return the sinusoids of these positions. Computed in float64: at position 10,000 float32 is off by 1e-3."""
    even = torch.arange(2 * first, size + 2 * first, 2, dtype=torch.float64, device=positions.device)
    frequencies = torch.exp(even * (-math.log(10000.0) / size))
    angles = positions.double()[:, None] * frequencies  # [T, P/2]
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)[:, :size].float()
