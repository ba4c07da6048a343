"""Scaled dot-product attention: softmax(Q K^T / sqrt(d_k)) V.

Vaswani et al. 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, eq. 1.
"""

import math
from typing import Literal

from pydantic import Field

from regardant.attention.base import (
    Attention,
    AttentionConfig,
    Keys,
    Mixed,
    Queries,
    Values,
    View,
    Weights,
    masked_softmax,
    softmax_dtype,
)
from regardant.attention.kernels import Kernel, sdpa


class ScaledDotProductConfig(AttentionConfig):
    """softmax(Q K^T / sqrt(d_k)) V."""

    kind: Literal["scaled_dot_product"] = "scaled_dot_product"

    scaled: bool = True
    """Divide scores by sqrt(d_k). Without it this is Luong's dot score."""

    temperature: float = Field(1.0, gt=0)
    """Divide scores by it: near 0 the best key gets everything, far above 1 all keys get the same."""

    def build(self, *, num_heads: int, head_size: int) -> "ScaledDotProduct":
        return ScaledDotProduct(head_size, scaled=self.scaled, temperature=self.temperature)


class ScaledDotProduct(Attention):
    """Exact attention over every key."""

    beams_share = True

    def __init__(self, head_size: int, *, scaled: bool = True, temperature: float = 1.0) -> None:
        super().__init__()
        self.scale = (1 / math.sqrt(head_size) if scaled else 1.0) / temperature
        self.kernel: Kernel = sdpa

    def compare(self, q: Queries, k: Keys, view: View) -> Weights:
        return (q @ k.mT).to(softmax_dtype(q)) * self.scale

    def weigh(self, q: Queries, k: Keys, view: View) -> Weights:
        return masked_softmax(self.compare(q, k, view), q, k, view)

    def mix(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed:
        return self.kernel(q, k, v, view, self.scale)
