"""T5's relative positions: a learned bias for each head and bucket of distances, exact near and logarithmic far.

Raffel et al. 2020, https://arxiv.org/abs/1910.10683, section 2.1.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from regardant.positions.base import Positions, PositionsConfig


class T5Config(PositionsConfig):
    """Learned bias for each head and bucket of distances."""

    kind: Literal["t5"] = "t5"

    num_buckets: int = Field(32, ge=4, multiple_of=4)
    """Number of buckets. Without a causal mask half are for earlier keys and half for later ones."""

    max_distance: int = Field(128, gt=0)
    """Distance from which on all distances share a bucket. Must be more than num_buckets / 2."""

    @model_validator(mode="after")
    def reaches_past_the_exact_buckets(self) -> "T5Config":
        """Refuse a max_distance within the exact buckets, which are num_buckets / 2 under a causal mask."""
        exact = self.num_buckets // 2
        if self.max_distance <= exact:
            raise ValueError(
                f"max_distance ({self.max_distance}) must be more than num_buckets / 2 ({exact}), which have buckets "
                "of their own"
            )
        return self

    def build(self, *, d_model: int, num_heads: int, head_size: int, max_length: int, causal: bool) -> "T5":
        return T5(self, num_heads, causal)


class T5(Positions):
    """Learned bias for each bucket, added outside the scaling."""

    acts_on = "scores"

    def __init__(self, config: T5Config, num_heads: int, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.buckets_per_side = config.num_buckets if causal else config.num_buckets // 2
        self.max_distance = config.max_distance
        self.table = nn.Parameter(torch.empty(num_heads, config.num_buckets))
        nn.init.normal_(self.table, std=0.02)

    def bias(self, queries: Int[Tensor, " Q"], keys: Int[Tensor, " K"]) -> Float[Tensor, "H Q K"]:
        return self.table[:, self.bucket(keys[None, :] - queries[:, None])]

    def bucket(self, relative: Int[Tensor, "Q K"]) -> Int[Tensor, "Q K"]:
        """Return the bucket of a key that is `relative` tokens after its query."""
        exact = self.buckets_per_side // 2
        distance = (-relative).clamp_min(0) if self.causal else relative.abs()
        far = torch.log(distance.clamp_min(1) / exact) / math.log(self.max_distance / exact)
        far_bucket = (exact + far * (self.buckets_per_side - exact)).long().clamp(max=self.buckets_per_side - 1)
        bucket = torch.where(distance < exact, distance, far_bucket)
        return bucket if self.causal else bucket + self.buckets_per_side * (relative > 0)
