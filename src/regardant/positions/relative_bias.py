"""Relative bias: a learned scalar r for each head and distance, added to the score of a pair.

softmax((q . k + r) / sqrt(d)) has r inside the scaling, softmax(q . k / sqrt(d) + r) outside (Liu et al. 2021,
"Swin", https://arxiv.org/abs/2103.14030, eq. 4).
"""

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regardant.positions.base import Positions, PositionsConfig


class RelativeBiasConfig(PositionsConfig):
    """Learned scalar for each head and distance."""

    kind: Literal["relative_bias"] = "relative_bias"

    max_distance: int = Field(64, gt=0)
    """Distance from which on all distances share a scalar."""

    scaled: bool = False
    """True divides the bias by sqrt(d_k), like the dot product."""

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> "RelativeBias":
        return RelativeBias(self.max_distance, num_heads, 1 / math.sqrt(head_size) if self.scaled else None)


class RelativeBias(Positions):
    """Learned table of biases for distances from -max_distance to max_distance."""

    acts_on = "scores"

    def __init__(self, max_distance: int, num_heads: int, scaled_by: float | None) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.scaled_by = scaled_by
        self.table = nn.Parameter(torch.empty(num_heads, 2 * max_distance + 1))
        nn.init.normal_(self.table, std=0.02)

    def bias(self, queries: Int[Tensor, " Q"], keys: Int[Tensor, " K"]) -> Float[Tensor, "H Q K"]:
        bias = self.table[:, clipped_distance(queries, keys, self.max_distance)]
        return bias if self.scaled_by is None else bias * self.scaled_by


def clipped_distance(queries: Tensor, keys: Tensor, most: int) -> Int[Tensor, "Q K"]:
    """Return key minus query position, clipped to `most` on both sides, plus `most`: from 0 to 2 `most`."""
    return (keys[None, :] - queries[:, None]).clamp(-most, most) + most
