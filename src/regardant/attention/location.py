"""Luong's location score: the weights depend on the state of the decoder alone, not on the source.

Luong et al. 2015, https://arxiv.org/abs/1508.04025, section 3.1: softmax(W q), a score for every source position.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import nn

from regardant.attention.interface import AttentionConfig, Keys, Queries, Weights, multiply_heads
from regardant.attention.masks import View, softmax_dtype
from regardant.attention.scored import ScoredAttention


class LocationConfig(AttentionConfig):
    """softmax(W q): independent of the content of keys. More than max_length keys are refused."""

    kind: Literal["location"] = "location"

    max_length: int = Field(256, gt=0)
    """Maximum number of keys."""

    def build(self, *, num_heads: int, head_size: int) -> "Location":
        return Location(self.max_length, num_heads, head_size)


class Location(ScoredAttention):
    """Attention with a row of W for each source position, counted in the order of keys: a view cannot set others."""

    honours = frozenset({"causal", "keys", "pairs", "bias"})
    reads_order = True
    longest: int

    def __init__(self, max_length: int, num_heads: int, head_size: int) -> None:
        super().__init__()
        self.longest = max_length
        self.weight = nn.Parameter(torch.empty(num_heads, max_length, head_size))
        nn.init.normal_(self.weight, std=head_size**-0.5)

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        length = k.shape[2]
        if length > self.longest:
            raise ValueError(
                f"Location was built for {self.longest} keys and got {length}: raise its max_length and train anew"
            )
        return multiply_heads(q, self.weight[:, :length].to(q.dtype).mT).to(softmax_dtype(q))
