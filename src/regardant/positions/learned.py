"""Learned positions: one free vector a position (Gehring et al. 2017, https://arxiv.org/abs/1705.03122)."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.positions.base import Positions, PositionsConfig


class LearnedConfig(PositionsConfig):
    """A table of `max_length` vectors; nothing is known past its end."""

    kind: Literal["learned"] = "learned"

    def build(self, *, d_model: int, num_heads: int, max_length: int) -> "Learned":
        return Learned(d_model, max_length)


class Learned(Positions):
    """A trained table, added to the input."""

    acts_on = "input"

    def __init__(self, d_model: int, max_length: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.table, std=d_model**-0.5)

    def embed(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T M"]:
        return self.table[positions]
