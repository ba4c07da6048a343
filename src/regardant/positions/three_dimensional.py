"""Positions in a video: sinusoids of time, row and column, in a third of the features each.

Like `two_dimensional`, with a third axis, for videos cut into tubelets (Arnab et al. 2021, "ViViT",
https://arxiv.org/abs/2103.15691).
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from regardant.positions.base import InputConfig, TabulatedPositions
from regardant.positions.sinusoidal import sinusoids


class ThreeDimensionalConfig(InputConfig):
    """Time, row and column of elements, which are in row-major order at each time step."""

    kind: Literal["three_dimensional"] = "three_dimensional"

    rows: int = Field(16, gt=0)
    """Number of rows at each time step."""

    columns: int = Field(16, gt=0)
    """Number of elements in a row."""

    def build(
        self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool
    ) -> "ThreeDimensional":
        return ThreeDimensional(self, d_model, max_length)


class ThreeDimensional(TabulatedPositions):
    """Sinusoids of the time, then of the row, then of the column. Features that remain belong to the time."""

    acts_on = "input"
    dimensions = 3

    def __init__(self, config: ThreeDimensionalConfig, d_model: int, max_length: int) -> None:
        super().__init__()
        self.concatenated = config.width(d_model, max_length)
        self.size = self.concatenated or d_model
        self.rows, self.columns = config.rows, config.columns
        if self.size < 6:
            at_fault = "positions.size" if self.concatenated else "d_model (recurrent: embedding_size or hidden_size)"
            raise ValueError(f"positions in a video need at least 6 numbers, not {self.size}: raise {at_fault}")
        self.reach(max_length)

    def codes(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T P"]:
        rows = positions // self.columns
        return self._codes_of(rows // self.rows, rows % self.rows, positions % self.columns)

    def embed(self, positions: Int[Tensor, " T"] | Int[Tensor, "T 3"]) -> Float[Tensor, "T P"]:
        """Return the vectors of indices in reading order [T], or of times, rows and columns [T, 3]."""
        if positions.dim() == 2:
            return self._codes_of(*positions.T).to(self.table.dtype)
        return self.table[positions]

    def _codes_of(self, times: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        third = self.size // 6 * 2
        parts = ((times, self.size - 2 * third), (rows, third), (columns, third))
        return torch.cat([sinusoids(at, size) for at, size in parts], 1)
