"""The position itself as a number: phi(i) = [i].

A counter-example: the product of two positions is i x j, which is largest for the last ones.
"""

from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor

from regardant.positions.base import Positions, PositionsConfig


class ScalarConfig(PositionsConfig):
    """One more number in each token's vector: its position as a share of max_length."""

    kind: Literal["scalar"] = "scalar"

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> "Scalar":
        return Scalar(max_length)

    def width(self, d_model: int, max_length: int) -> int:
        return 1


class Scalar(Positions):
    """i / max_length, concatenated. An unscaled position of 200 would dominate the token."""

    acts_on = "input"
    concatenated = 1

    def __init__(self, max_length: int) -> None:
        super().__init__()
        self.max_length = max_length

    def embed(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T 1"]:
        return positions[:, None] / self.max_length
