"""Performer: an unbiased estimate of the softmax kernel by positive orthogonal random features (FAVOR+).

exp(q . k) = E_w [exp(w . q - |q|^2 / 2) exp(w . k - |k|^2 / 2)] with w ~ N(0, 1); orthogonal w lower the variance.
Choromanski et al. 2021, "Rethinking attention with Performers", https://arxiv.org/abs/2009.14794, section 2.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from regardant.attention.interface import AttentionConfig, Keys, Queries
from regardant.attention.kernelised import KernelisedAttention
from regardant.attention.masks import softmax_dtype


class PerformerConfig(AttentionConfig):
    """Softmax estimated by random features; decodes with a state of constant size."""

    kind: Literal["performer"] = "performer"

    num_features: int = Field(128, gt=0)
    """Number of random features. The error of the weights falls with the square root of this number."""

    def build(self, *, num_heads: int, head_size: int) -> "Performer":
        return Performer(self.num_features, num_heads, head_size)


class Performer(KernelisedAttention):
    """Kernelised attention with random features. Directions are drawn once and stored; `redraw` draws them again.

    In float32 the features of a key longer than about 16 D^(1/4) underflow, so that the key has no weight; a query with
    only such keys mixes to zeros. For D = 64 that is a length of 45; keys of unit variance have length 8.
    """

    directions: Tensor
    """[H, F, D]"""

    def __init__(self, num_features: int, num_heads: int, head_size: int) -> None:
        super().__init__()
        self.scale_of_each = head_size**-0.25  # applied to queries and to keys: together 1 / sqrt(D)
        drawn = torch.stack([orthogonal_directions(num_features, head_size) for _ in range(num_heads)])
        self.register_buffer("directions", drawn)

    def redraw(self) -> None:
        num_heads, num_features, head_size = self.directions.shape
        for head in range(num_heads):
            self.directions[head].copy_(orthogonal_directions(num_features, head_size))

    def query_features(self, q: Queries) -> Tensor:
        exponents = self._exponents(q)
        # Scaled so that the largest feature of each query is 1: the factor cancels.
        return (exponents - exponents.detach().amax(-1, keepdim=True)).exp()

    def key_features(self, k: Keys) -> Tensor:
        # Keys are not scaled: the factor would depend on later keys. w.k - |k|^2/2 is at most |w|^2/2, about D/2, and
        # has no lower bound, which is why long keys underflow.
        return self._exponents(k).exp()

    def _exponents(self, x: Tensor) -> Tensor:
        x = x.to(softmax_dtype(x)) * self.scale_of_each
        return x @ self.directions.to(x.dtype).mT - x.square().sum(-1, keepdim=True) / 2


def orthogonal_directions(num_features: int, head_size: int) -> Tensor:
    """Return directions [F, D], each normally distributed, and orthogonal within each block of D."""
    blocks = []
    for start in range(0, num_features, head_size):
        square = torch.randn(head_size, head_size)
        # The signs make the distribution uniform (Mezzadri 2007, https://arxiv.org/abs/math-ph/0609050).
        basis, triangle = torch.linalg.qr(square)
        blocks.append((basis * triangle.diagonal().sign()).T[: num_features - start])
    lengths = torch.randn(num_features, head_size).norm(dim=1, keepdim=True)
    return torch.cat(blocks) * lengths
