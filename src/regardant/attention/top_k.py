"""Top-k attention: a softmax over the k best keys of each query.

A key that ties with the k-th best is kept as well, so that the result does not depend on the order of keys: more than
k keys may be kept. k = 1 is hard attention, k = all is full attention. Gupta et al. 2021, "Memory-efficient
Transformers via top-k attention", https://arxiv.org/abs/2106.06899.
"""

from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from regardant.attention.interface import AttentionConfig, Weights
from regardant.attention.scored import DotProductAttention


class TopKConfig(AttentionConfig):
    """Softmax over the keys with the k largest dot products."""

    kind: Literal["top_k"] = "top_k"

    k: int = Field(8, gt=0)
    """Number of keys that each query keeps."""

    def build(self, *, num_heads: int, head_size: int) -> "TopK":
        return TopK(self.k, head_size)


class TopK(DotProductAttention):
    """Softmax over the best keys. The weights have a gradient, the choice of keys has none; in `entmax` both have."""

    discontinuous = True

    def __init__(self, k: int, head_size: int) -> None:
        super().__init__(head_size)
        self.k = k

    def normalise(self, scores: Float[Tensor, "B H Q K"]) -> Weights:
        if self.k < scores.shape[-1]:
            least = scores.detach().topk(self.k, -1).values[..., -1:]
            scores = scores.masked_fill(scores < least, float("-inf"))
        return torch.softmax(scores, -1)
