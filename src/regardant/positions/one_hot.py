"""One-hot positions: a vector with as many features as there are positions, 1 at the position and 0 elsewhere.

All pairs of positions are equally similar, so that nothing generalises from one position to another.
"""

from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regardant.positions.base import Positions, PositionsConfig


class OneHotConfig(PositionsConfig):
    """One-hot positions in max_length of the d_model features of each token's vector."""

    kind: Literal["one_hot"] = "one_hot"

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> "OneHot":
        return OneHot(max_length)

    def width(self, d_model: int, max_length: int) -> int:
        return max_length


class OneHot(Positions):
    """One-hot vectors, concatenated."""

    acts_on = "input"

    def __init__(self, max_length: int) -> None:
        super().__init__()
        self.concatenated = self.longest = max_length

    def embed(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T P"]:
        return F.one_hot(positions, self.concatenated).float()
