"""Positions on a grid: sinusoids of the row in half of the features, of the column in the other half.

They serve images cut into patches in row-major order (Wang and Liu 2019, https://arxiv.org/abs/1908.11415; Carion et
al. 2020, "DETR", https://arxiv.org/abs/2005.12872, appendix A.4).
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from regardant.positions.base import InputConfig, TabulatedPositions
from regardant.positions.sinusoidal import sinusoids


class TwoDimensionalConfig(InputConfig):
    """Row and column of a grid in row-major order, in a multiple of 4 features."""

    kind: Literal["two_dimensional"] = "two_dimensional"

    columns: int = Field(16, gt=0)
    """Number of elements in a row."""

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> "TwoDimensional":
        return TwoDimensional(self, d_model, max_length)


class TwoDimensional(TabulatedPositions):
    """Sinusoids of the row, then of the column."""

    acts_on = "input"
    dimensions = 2

    def __init__(self, config: TwoDimensionalConfig, d_model: int, max_length: int) -> None:
        super().__init__()
        self.concatenated = config.width(d_model, max_length)
        self.size = self.concatenated or d_model
        self.columns = config.columns
        if self.size % 4:
            at_fault = "positions.size" if self.concatenated else "d_model (recurrent: embedding_size or hidden_size)"
            raise ValueError(f"positions on a grid need a multiple of 4 numbers, not {self.size}: change {at_fault}")
        self.reach(max_length)

    def codes(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T P"]:
        return self._codes_of(positions // self.columns, positions % self.columns)

    def embed(self, positions: Int[Tensor, " T"] | Int[Tensor, "T 2"]) -> Float[Tensor, "T P"]:
        """Return the vectors of indices in reading order [T], or of rows and columns [T, 2]."""
        if positions.dim() == 2:
            return self._codes_of(positions[:, 0], positions[:, 1]).to(self.table.dtype)
        return self.table[positions]

    def _codes_of(self, rows: Tensor, columns: Tensor) -> Tensor:
        return torch.cat([sinusoids(at, self.size // 2) for at in (rows, columns)], 1)
