"""Sinusoidal positions: PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(p / 10000^(2i/d)), i from 0.

Vaswani et al. 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section 3.5.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regardant.positions.base import Positions, PositionsConfig


class SinusoidalConfig(PositionsConfig):
    """Waves of d_model/2 lengths from 2 pi to almost 10000 * 2 pi; defined for any length."""

    kind: Literal["sinusoidal"] = "sinusoidal"

    def build(self, *, d_model: int, num_heads: int, max_length: int) -> "Sinusoidal":
        return Sinusoidal(d_model, max_length)


class Sinusoidal(Positions):
    """Sine and cosine interleaved, added to the input."""

    acts_on = "input"
    table: Tensor

    def __init__(self, d_model: int, max_length: int) -> None:
        super().__init__()
        # A table, since powers and sines at every step cost more than all else in decoding a short sentence.
        self.register_buffer("table", sinusoids(torch.arange(max_length), d_model), persistent=False)

    def embed(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T M"]:
        return self.table[positions]


def sinusoids(positions: Int[Tensor, " T"], d_model: int) -> Float[Tensor, "T M"]:
    """The code of these positions. Computed in float64: at position 10,000 float32 is off by 1e-3."""
    frequencies = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10000.0) / d_model))
    angles = positions.double()[:, None] * frequencies  # [T, M/2]
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)[:, :d_model].float()
