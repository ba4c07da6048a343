"""Additive attention: softmax(v . tanh(W q + U k)), a small network in place of a dot product.

Bahdanau et al. 2015, "Neural machine translation by jointly learning to align and translate",
https://arxiv.org/abs/1409.0473, appendix A.1.2. W and U are the projections of the layer that holds the mechanism, so
queries and keys may be of unequal sizes before projection. Luong's `concat` (2015, https://arxiv.org/abs/1508.04025,
section 3.1) is the same function: W [q; k] is W_q q + W_k k. Along the edges of a graph it is the attention of GATv2
(Brody et al. 2022, https://arxiv.org/abs/2105.14491, equation 7), with tanh in place of LeakyReLU.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regardant.attention.interface import AttentionConfig, Keys, Mixed, Queries, Values, Weights
from regardant.attention.listed_pairs import attend_along
from regardant.attention.masks import View, softmax_dtype
from regardant.attention.scored import ScoredAttention


class AdditiveConfig(AttentionConfig):
    """softmax(v . tanh(q + k)) of projected queries and keys; builds a vector for each pair."""

    kind: Literal["additive"] = "additive"

    def build(self, *, num_heads: int, head_size: int) -> "Additive":
        return Additive(num_heads, head_size)


class Additive(ScoredAttention):
    """Additive attention with one hidden layer of D units per head."""

    lists_pairs = True
    needs_projection = True

    def __init__(self, num_heads: int, head_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, head_size))
        nn.init.uniform_(self.weight, -(head_size**-0.5), head_size**-0.5)

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        hidden = torch.tanh(q[:, :, :, None] + k[:, :, None])  # [B, H, Q, K, D]
        scores = (hidden @ self.weight.to(hidden.dtype)[:, None, :, None]).squeeze(-1)
        return scores.to(softmax_dtype(q))

    def mix(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed:
        if (pairs := view.listed_pairs(q, k)) is not None:
            return attend_along(pairs, self._score, self.drop, q, k, v)
        return super().mix(q, k, v, view)

    def _score(self, q: Float[Tensor, "B H P D"], k: Float[Tensor, "B H P D"]) -> Float[Tensor, "B H P"]:
        hidden = torch.tanh(q + k)
        return (hidden @ self.weight.to(hidden.dtype)[:, :, None]).squeeze(-1)
