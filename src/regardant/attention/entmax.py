"""Entmax: weights that are exactly zero for keys far below the best, and differentiable.

Weights are the point of the simplex nearest to the scores for alpha = 2 (sparsemax: Martins and Astudillo 2016,
https://arxiv.org/abs/1602.02068); alpha = 1.5 is between that and the softmax (Peters et al. 2019,
https://arxiv.org/abs/1905.05702). The threshold is computed exactly, by sorting.
"""

from typing import Any, Literal

import torch
from jaxtyping import Float
from pydantic import field_validator
from torch import Tensor
from torch.autograd.function import once_differentiable

from regardant.attention.interface import AttentionConfig, Weights
from regardant.attention.scored import DotProductAttention


class EntmaxConfig(AttentionConfig):
    """Sparse weights of scaled dot products."""

    kind: Literal["entmax"] = "entmax"

    alpha: float = 1.5
    """Exponent of entmax: 2 is sparsemax, 1.5 is between sparsemax and the softmax."""

    @field_validator("alpha")
    @classmethod
    def has_an_exact_threshold(cls, alpha: float) -> float:
        """Refuse values other than 1.5 and 2, whose threshold has no closed form."""
        if alpha not in (1.5, 2):
            raise ValueError(f"given {alpha}; allowed: 1.5, 2")
        return alpha

    def build(self, *, num_heads: int, head_size: int) -> "Entmax":
        return Entmax(self.alpha, head_size)


class Entmax(DotProductAttention):
    """Attention to a number of keys that depends on the scores: a differentiable form of top-k."""

    def __init__(self, alpha: float, head_size: int) -> None:
        super().__init__(head_size)
        self.alpha = alpha

    def normalise(self, scores: Float[Tensor, "B H Q K"]) -> Weights:
        weights: Tensor = _Entmax.apply(scores, self.alpha)  # type: ignore[no-untyped-call]
        return weights


class _Entmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: float) -> Tensor:
        # A key more than 1 / (alpha - 1) below the best has no weight; clamping keeps sums over -inf finite.
        scores = ((scores - scores.amax(-1, keepdim=True)) * (alpha - 1)).clamp_min(-2)
        weights = (scores - _threshold(scores, alpha)).clamp_min(0) ** (1 / (alpha - 1))
        ctx.save_for_backward(weights)
        ctx.alpha = alpha
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (weights,) = ctx.saved_tensors
        share = torch.where(weights > 0, weights ** (2 - ctx.alpha), 0)
        through = gradients[0] * share
        mean = through.sum(-1, keepdim=True) / share.sum(-1, keepdim=True)
        return through - mean * share, None


def _threshold(scores: Tensor, alpha: float) -> Tensor:
    """Return the threshold with which weights sum to one: that of the k largest scores, which alone reach it."""
    ordered = scores.sort(-1, descending=True).values
    counts = torch.arange(1, scores.shape[-1] + 1, device=scores.device, dtype=scores.dtype)
    means = ordered.cumsum(-1) / counts
    if alpha == 2:
        thresholds = means - 1 / counts
    else:  # sum_k (score - t)^2 = 1
        spread = (ordered.square().cumsum(-1) / counts - means.square()).clamp_min(0)
        thresholds = means - (1 / counts - spread).clamp_min(0).sqrt()
    support = (thresholds <= ordered).sum(-1, keepdim=True)
    return thresholds.gather(-1, support - 1)
