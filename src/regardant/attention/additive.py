"""Additive attention: softmax(v . tanh(W q + U k)), a small network in place of a product.

Bahdanau et al. 2015, "Neural machine translation by jointly learning to align and translate",
https://arxiv.org/abs/1409.0473, appendix A.1.2. W and U are the projections of the layer that holds the mechanism, so
queries and keys may be of unequal sizes before them. Luong's `concat` (2015, https://arxiv.org/abs/1508.04025,
section 3.1) is the same function: W [q; k] is W_q q + W_k k.
"""

from typing import Literal

import torch
from torch import nn

from regardant.attention.interface import AttentionConfig, Keys, Queries, Weights
from regardant.attention.masks import View, softmax_dtype
from regardant.attention.scored import ScoredAttention


class AdditiveConfig(AttentionConfig):
    """softmax(v . tanh(q + k)) of projected queries and keys; builds a vector for each pair."""

    kind: Literal["additive"] = "additive"

    def build(self, *, num_heads: int, head_size: int) -> "Additive":
        return Additive(num_heads, head_size)


class Additive(ScoredAttention):
    """One hidden layer of D units a head."""

    needs_projection = True

    def __init__(self, num_heads: int, head_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, head_size))
        nn.init.uniform_(self.weight, -(head_size**-0.5), head_size**-0.5)

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        hidden = torch.tanh(q[:, :, :, None] + k[:, :, None])  # [B, H, Q, K, D]
        scores = (hidden @ self.weight.to(hidden.dtype)[:, None, :, None]).squeeze(-1)
        return scores.to(softmax_dtype(q))
