"""ALiBi: scores fall linearly with the distance, at a fixed slope for each head. Nothing is learned.

Press et al. 2022, "Train short, test long", https://arxiv.org/abs/2108.12409, section 3.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regardant.positions.base import Positions, PositionsConfig


class AlibiConfig(PositionsConfig):
    """Bias that falls with the distance. Made for texts longer than those of training."""

    kind: Literal["alibi"] = "alibi"

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> "Alibi":
        return Alibi(num_heads)


class Alibi(Positions):
    """Bias with slopes 2^(-8/H), 2^(-16/H), ..., 2^-8.

    The paper defines it for causal decoders. Without a causal mask it falls on both sides alike, so that a model cannot
    tell the token before from the one after.
    """

    acts_on = "scores"
    slopes: Tensor

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.register_buffer("slopes", 2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_heads), persistent=False)

    def bias(self, queries: Int[Tensor, " Q"], keys: Int[Tensor, " K"]) -> Float[Tensor, "H Q K"]:
        return -self.slopes[:, None, None] * (queries[:, None] - keys[None, :]).abs()
