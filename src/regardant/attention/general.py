"""Luong's general score: q W k.

Luong et al. 2015, "Effective approaches to attention-based neural machine translation",
https://arxiv.org/abs/1508.04025, section 3.1.
"""

from typing import Literal

import torch
from torch import nn

from regardant.attention.interface import AttentionConfig, Keys, Queries, Weights, multiply_heads
from regardant.attention.masks import View, softmax_dtype
from regardant.attention.scaled_dot_product import ScaledDotProductConfig
from regardant.attention.scored import ScoredAttention
from regardant.attention.softmax import exact


class GeneralConfig(AttentionConfig):
    """softmax(q W k), with a matrix for each head."""

    kind: Literal["general"] = "general"

    def build(self, *, num_heads: int, head_size: int) -> "General":
        return General(num_heads, head_size)

    def of_projected_keys(self) -> AttentionConfig:
        """Return the configuration of dot products: with unequal sizes, q W k is q . (W k)."""
        return ScaledDotProductConfig(scaled=False)


class General(ScoredAttention):
    """Attention with a bilinear score, unscaled as in the paper."""

    def __init__(self, num_heads: int, head_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, head_size, head_size))
        for head in self.weight:
            nn.init.xavier_uniform_(head)

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        wide = softmax_dtype(q)
        with exact(q):  # unscaled scores are large, with a large rounding error
            return multiply_heads(q.to(wide), self.weight.to(wide)) @ k.to(wide).mT
