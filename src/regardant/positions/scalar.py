"""Scalar positions: the position itself as a feature, phi(i) = [i].

This scheme is a counter-example: the product of two positions is i x j, which is largest for the last ones.
"""

from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor

from regardant.positions.base import Positions, PositionsConfig


class ScalarConfig(PositionsConfig):
    """Position in one of the d_model features of each token's vector, as it is or as a share of max_length."""

    kind: Literal["scalar"] = "scalar"

    raw: bool = False
    """True concatenates i, false i / max_length. The product of two raw positions, i x j, outweighs the tokens."""

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> "Scalar":
        return Scalar(1 if self.raw else max_length)

    def width(self, d_model: int, max_length: int) -> int:
        return 1


class Scalar(Positions):
    """Position i / scale, concatenated."""

    acts_on = "input"
    concatenated = 1

    def __init__(self, scale: int) -> None:
        super().__init__()
        self.scale = scale

    def embed(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T 1"]:
        return positions[:, None] / self.scale
