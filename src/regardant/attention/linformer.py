"""Linformer: keys and values are projected along the length to a fixed number of rows.

softmax(q (E K)^T / sqrt(d)) F V, with learned E and F of `rank` rows. The cost is n x rank.
Wang et al. 2020, https://arxiv.org/abs/2006.04768, eq. 7.
"""

import math
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regardant.attention.interface import Attention, AttentionConfig, Keys, Mixed, Queries, Values, Weights
from regardant.attention.masks import View, softmax_dtype


class LinformerConfig(AttentionConfig):
    """Softmax over learned mixtures of the keys. Mixtures include later tokens, so that no causal mask is possible."""

    kind: Literal["linformer"] = "linformer"

    rank: int = Field(64, gt=0)
    """Number of mixtures of keys, and of values."""

    max_length: int = Field(256, gt=0)
    """Maximum number of keys."""

    def build(self, *, num_heads: int, head_size: int) -> "Linformer":
        return Linformer(self, num_heads, head_size)


class Linformer(Attention):
    """Attention of low rank. Rows of weights need not sum to one, as in the paper: the mixtures are unconstrained."""

    honours = frozenset({"keys"})
    reads_order = True
    why_not: ClassVar[dict[str, str]] = {"causal": "each of its mixtures holds later keys too"}
    longest: int

    def __init__(self, config: LinformerConfig, num_heads: int, head_size: int) -> None:
        super().__init__()
        self.scale = 1 / math.sqrt(head_size)
        self.longest = config.max_length
        shape = (num_heads, config.rank, config.max_length)
        # A mixture of the maximum number of keys has the variance of one key, so that no softmax starts saturated.
        self.of_keys = nn.Parameter(torch.randn(shape) / math.sqrt(config.max_length))
        self.of_values = nn.Parameter(torch.randn(shape) / math.sqrt(config.max_length))

    def compute_weights(self, q: Queries, k: Keys, view: View) -> Weights:
        weights, of_values = self._weights_of_mixtures(q, k, view)
        return weights @ of_values.to(weights.dtype)

    def mix(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed:
        weights, of_values = self._weights_of_mixtures(q, k, view)
        return weights.to(v.dtype) @ (of_values.to(v.dtype) @ v)

    def _weights_of_mixtures(self, q: Tensor, k: Tensor, view: View) -> tuple[Tensor, Tensor]:
        """Return the weights of mixtures [B, H, Q, R], and the mixtures of values [#B, H, R, K]."""
        length = k.shape[2]
        if length > self.longest:
            raise ValueError(
                f"Linformer was built for {self.longest} keys and got {length}: raise its max_length and train anew"
            )
        of_keys, of_values = self.of_keys[None, ..., :length], self.of_values[None, ..., :length]
        if view.keys is not None:
            real = view.keys[:, None, None, :]
            of_keys, of_values = of_keys * real, of_values * real
        scores = (q @ (of_keys.to(k.dtype) @ k).mT).to(softmax_dtype(q)) * self.scale
        return torch.softmax(scores, -1), of_values
