"""Where a token stands: the one interface of every scheme.

A scheme declares where it acts: on the `input` (added to the representation), on `query_key` (turns queries and
keys in the layer) or on the `scores` (a bias that the layer hands to the mechanism).

Shape legend: T positions, M d_model, B batch, H heads, D head size, Q queries, K keys.
"""

from typing import ClassVar, Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.config import Config

Place = Literal["input", "query_key", "scores"]


class Positions(nn.Module):
    """A scheme. It implements the one method that its place calls for."""

    acts_on: ClassVar[Place]

    def embed(self, positions: Int[Tensor, " T"]) -> Float[Tensor, "T M"]:
        """input: the vectors to add to the tokens that stand there."""
        raise NotImplementedError

    def turn(self, x: Float[Tensor, "B H T D"], positions: Int[Tensor, " T"]) -> Float[Tensor, "B H T D"]:
        """query_key: the queries or keys, moved by where they stand."""
        raise NotImplementedError

    def bias(self, queries: Int[Tensor, " Q"], keys: Int[Tensor, " K"]) -> Float[Tensor, "H Q K"]:
        """scores: what to add to the scores of this block."""
        raise NotImplementedError


class PositionsConfig(Config):
    """What every scheme's configuration is."""

    kind: str

    def build(self, *, d_model: int, num_heads: int, max_length: int) -> Positions:
        """The scheme for vectors of `d_model`, layers of `num_heads` and texts of at most `max_length` tokens."""
        raise NotImplementedError
