"""Learned positions: one free vector for each position (Gehring et al. 2017, https://arxiv.org/abs/1705.03122).

On a grid of another size than the trained one: Dosovitskiy et al. 2021, "ViT", https://arxiv.org/abs/2010.11929,
section 3.2.

Shape legend: T positions, P size of a position's own vector.
"""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.positions.base import InputConfig, Positions


class LearnedConfig(InputConfig):
    """Table of `max_length` learned vectors. Longer inputs are refused; for images of another size than in training
    the vectors are interpolated."""

    kind: Literal["learned"] = "learned"

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> "Learned":
        return Learned(d_model, max_length, concatenated=self.width(d_model, max_length))


class Learned(Positions):
    """Learned table of positions."""

    acts_on = "input"
    interpolates = True

    def __init__(self, d_model: int, max_length: int, *, concatenated: int = 0) -> None:
        super().__init__()
        self.concatenated = concatenated
        self.longest = max_length
        self.table = nn.Parameter(torch.empty(max_length, concatenated or d_model))
        nn.init.normal_(self.table, std=d_model**-0.5)

    def embed(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T P"]:
        return self.table[positions]

    def interpolate(self, trained: tuple[int, ...], grid: tuple[int, ...]) -> Float[Tensor, "T P"]:
        """Return the vectors of a grid of rows and columns by bicubic interpolation of the trained ones. Both grids are
        in row-major order."""
        block = self.table[: math.prod(trained)].T.unflatten(1, trained)
        return F.interpolate(block[None], grid, mode="bicubic")[0].flatten(1).T
