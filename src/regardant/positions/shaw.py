"""Shaw's relative positions: a learned vector for each distance, added to the key.

score = q . (k + a) / sqrt(d), with a of the clipped distance, shared by all heads. Shaw et al. 2018,
https://arxiv.org/abs/1803.02155, eq. 4. The second set of vectors, added to the values (eq. 3), is left out: by
their table 3 it makes no difference.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regardant.positions.base import PositionBias, Positions, PositionsConfig
from regardant.positions.relative_bias import clipped_distance


class ShawConfig(PositionsConfig):
    """Learned vector for each distance, added to the key."""

    kind: Literal["shaw"] = "shaw"

    max_distance: int = Field(16, gt=0)
    """Distance from which on all distances share a vector."""

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> "Shaw":
        return Shaw(self.max_distance, head_size)


class Shaw(Positions):
    """Products of queries with the vector of each distance, gathered for pairs: no vector per pair is built."""

    acts_on = "scores"
    depends_on_query = True
    scaled_by: float

    def __init__(self, max_distance: int, head_size: int) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.scaled_by = 1 / math.sqrt(head_size)
        self.table = nn.Parameter(torch.empty(2 * max_distance + 1, head_size))
        nn.init.normal_(self.table, std=head_size**-0.5)

    def bias_of(self, q: Float[Tensor, "B H T D"], first: int) -> PositionBias:
        answers = q @ self.table.to(q.dtype).T * self.scaled_by  # [B, H, T, 2 max_distance + 1]

        def bias(queries: Int[Tensor, " Q"], keys: Int[Tensor, " K"]) -> Float[Tensor, "B H Q K"]:
            distances = clipped_distance(queries, keys, self.max_distance)
            of_queries = answers[:, :, queries - first]
            return of_queries.gather(-1, distances.expand(*of_queries.shape[:2], *distances.shape))

        return bias
