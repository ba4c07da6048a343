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
    """Random features. The error of the weights falls with their square root."""

    def build(self, *, num_heads: int, head_size: int) -> "Performer":
        return Performer(self.num_features, num_heads, head_size)


class Performer(KernelisedAttention):
    """Its directions are drawn once, kept with the weights, and drawn anew by `redraw`.

    In float32 a key longer than some 16 D^(1/4) weighs nothing, and a query that sees no others mixes to zeros: 45 for
    heads of 64, where keys of unit variance are 8 long.
    """

    directions: Tensor
    """[H, F, D]"""

    def __init__(self, num_features: int, num_heads: int, head_size: int) -> None:
        super().__init__()
        self.scale_of_each = head_size**-0.25  # of queries and of keys: together 1 / sqrt(D)
        drawn = torch.stack([orthogonal_directions(num_features, head_size) for _ in range(num_heads)])
        self.register_buffer("directions", drawn)

    def redraw(self) -> None:
        num_heads, num_features, head_size = self.directions.shape
        for head in range(num_heads):
            self.directions[head].copy_(orthogonal_directions(num_features, head_size))

    def query_features(self, q: Queries) -> Tensor:
        exponents = self._exponents(q)
        # Each query's largest feature is 1, by a factor that cancels.
        return (exponents - exponents.detach().amax(-1, keepdim=True)).exp()

    def key_features(self, k: Keys) -> Tensor:
        # No such factor for keys: it would depend on later ones. w.k - |k|^2/2 is at most |w|^2/2, about D/2; that it
        # has no least number is the limit above.
        return self._exponents(k).exp()

    def _exponents(self, x: Tensor) -> Tensor:
        x = x.to(softmax_dtype(x)) * self.scale_of_each
        return x @ self.directions.to(x.dtype).mT - x.square().sum(-1, keepdim=True) / 2


def orthogonal_directions(num_features: int, head_size: int) -> Tensor:
    """[F, D]: normally distributed each, and orthogonal within each block of D of them."""
    blocks = []
    for start in range(0, num_features, head_size):
        square = torch.randn(head_size, head_size)
        # The signs make the distribution uniform (Mezzadri 2007, https://arxiv.org/abs/math-ph/0609050).
        basis, triangle = torch.linalg.qr(square)
        blocks.append((basis * triangle.diagonal().sign()).T[: num_features - start])
    lengths = torch.randn(num_features, head_size).norm(dim=1, keepdim=True)
    return torch.cat(blocks) * lengths
