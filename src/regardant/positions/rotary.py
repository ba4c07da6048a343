"""Rotary positions: pairs of features of queries and keys are rotated by an angle proportional to the position.

The product of a rotated query and a rotated key depends on their distance alone. Su et al. 2021, "RoFormer",
https://arxiv.org/abs/2104.09864, eq. 34.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from regardant.positions.base import PositionsConfig, TabulatedPositions


class RotaryConfig(PositionsConfig):
    """Rotation of queries and keys by their position. The size of a head must be even."""

    kind: Literal["rotary"] = "rotary"

    base: float = Field(10000.0, gt=1)
    """Base of the frequencies: the slowest pair turns once in almost 2 pi times this number of tokens."""

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> "Rotary":
        return Rotary(head_size, self.base, max_length)


class Rotary(TabulatedPositions):
    """Rotation of neighbouring features 2i and 2i + 1, as in the paper, by complex multiplication."""

    acts_on = "query_key"

    def __init__(self, head_size: int, base: float, max_length: int) -> None:
        super().__init__()
        if head_size % 2:
            raise ValueError(
                f"rotary positions rotate pairs, and a head has {head_size} numbers: change num_heads or key_size"
            )
        self.head_size = head_size
        self.base = base
        self.reach(max_length)

    def codes(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T half 2"]:
        """Return a cosine and a sine for each pair."""
        even = torch.arange(0, self.head_size, 2, dtype=torch.float64, device=positions.device)
        angles = positions.double()[:, None] * self.base ** -(even / self.head_size)
        return torch.stack((angles.cos(), angles.sin()), -1).float()

    def turn(self, x: Float[Tensor, "B H T D"], positions: Int[Tensor, " T"]) -> Float[Tensor, "B H T D"]:
        wide = torch.promote_types(x.dtype, torch.float32)  # PyTorch has no complex numbers of 16 bits
        turns = torch.view_as_complex(self.table[positions].to(wide))
        pairs = torch.view_as_complex(x.to(wide).contiguous().view(*x.shape[:-1], x.shape[-1] // 2, 2))
        return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)
