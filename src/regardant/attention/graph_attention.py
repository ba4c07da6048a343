"""Graph attention: softmax(LeakyReLU(a . q + b . k)), the sum of a scalar of the query and a scalar of the key.

Veličković et al. 2018, "Graph attention networks" (GAT), https://arxiv.org/abs/1710.10903, equation 3: queries, keys
and values are the same projected nodes, and a node attends to its neighbours and itself. All queries rank the keys
alike: the scalar of a query only shifts the point where LeakyReLU bends (Brody et al. 2022,
https://arxiv.org/abs/2105.14491, theorem 1). `additive` has no such limit.

Shape legend: as in `attention.interface`; P pairs.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regardant.attention.interface import AttentionConfig, Keys, Mixed, Queries, Values, Weights
from regardant.attention.listed_pairs import attend_along
from regardant.attention.masks import View, softmax_dtype
from regardant.attention.scored import ScoredAttention

SLOPE = 0.2
"""Slope of LeakyReLU below zero."""


class GraphAttentionConfig(AttentionConfig):
    """softmax(LeakyReLU(a . q + b . k)) with learned vectors a and b for each head (GAT)."""

    kind: Literal["graph_attention"] = "graph_attention"

    def build(self, *, num_heads: int, head_size: int) -> "GraphAttention":
        return GraphAttention(num_heads, head_size)


class GraphAttention(ScoredAttention):
    """Graph attention with two vectors per head, one for queries and one for keys."""

    lists_pairs = True

    def __init__(self, num_heads: int, head_size: int) -> None:
        super().__init__()
        self.of_query = nn.Parameter(torch.empty(num_heads, head_size))
        self.of_key = nn.Parameter(torch.empty(num_heads, head_size))
        for weight in (self.of_query, self.of_key):
            nn.init.uniform_(weight, -(head_size**-0.5), head_size**-0.5)

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        of_queries, of_keys = (_along(x, weight) for x, weight in ((q, self.of_query), (k, self.of_key)))
        return F.leaky_relu(of_queries[..., :, None] + of_keys[..., None, :], SLOPE).to(softmax_dtype(q))

    def mix(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed:
        if (pairs := view.listed_pairs(q, k)) is not None:
            return attend_along(pairs, self._score, self.drop, q, k, v)
        return super().mix(q, k, v, view)

    def _score(self, q: Float[Tensor, "B H P D"], k: Float[Tensor, "B H P D"]) -> Float[Tensor, "B H P"]:
        return F.leaky_relu(_along(q, self.of_query) + _along(k, self.of_key), SLOPE)


def _along(x: Float[Tensor, "B H T D"], weight: Float[Tensor, "H D"]) -> Float[Tensor, "B H T"]:
    """Return the dot product of each vector with the weight of its head."""
    return (x @ weight.to(x.dtype)[:, :, None]).squeeze(-1)
