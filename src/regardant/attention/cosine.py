"""Cosine attention: scores are g cos(q, k). They depend on the directions of queries and keys, not on their lengths.

Henry et al. 2020, "Query-key normalization for Transformers", https://arxiv.org/abs/2010.04245, eq. 5, after the
content addressing of Graves et al. 2014, "Neural Turing machines", https://arxiv.org/abs/1410.5401, eq. 5 and 6.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regardant.attention.interface import AttentionConfig, Keys, Mixed, Queries, Values, Weights
from regardant.attention.masks import View, softmax_dtype
from regardant.attention.scaled_dot_product import ScaledDotProduct
from regardant.attention.softmax import exact


class CosineAttentionConfig(AttentionConfig):
    """softmax(g cos(q, k)), with a learned g for each head."""

    kind: Literal["cosine"] = "cosine"

    gain: float = Field(10.0, gt=0)
    """Initial value of g, the largest possible score. The paper takes log2(n^2 - n): about 10 for 32 tokens."""

    def build(self, *, num_heads: int, head_size: int) -> "CosineAttention":
        return CosineAttention(num_heads, self.gain)


class CosineAttention(ScaledDotProduct):
    """Exact attention with scores that are bounded by g."""

    def __init__(self, num_heads: int, gain: float) -> None:
        super().__init__(head_size=1)  # g stands for the scale
        self.gain = nn.Parameter(torch.full((num_heads, 1, 1), gain))

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        with exact(q):
            return super().compute_scores(*self._directions(q, k), view)

    def mix(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed:
        with exact(q):  # a score of ten in bfloat16 is off by a thirtieth
            q, k = self._directions(q, k)
            return super().mix(q, k, v.to(q.dtype), view).to(v.dtype)

    def _directions(self, q: Queries, k: Keys) -> tuple[Tensor, Tensor]:
        """Return queries of length g and keys of length 1, in `softmax_dtype`."""
        q, k = (F.normalize(x.to(softmax_dtype(x)), dim=-1) for x in (q, k))
        return self.gain.to(q.dtype) * q, k
