"""Why scores are divided by sqrt(d): statistics of random vectors, sampled with a fixed seed."""

import torch
from torch import Tensor

from regardant.attention import ScaledDotProduct
from regardant.checks.verify.check import COURSE, MISSAOUI, Claim
from regardant.checks.verify.mechanisms import entropy


@Claim(
    "N-19",
    "The variance of q · k",
    f"{COURSE}; {MISSAOUI}",
    lecture="variance d; q · k ~ N(0, d)",
    true={
        "variance / d at d = 4, 16, 64, 256, 512, 1024": "1.00±0.06 1.00±0.06 1.00±0.06 1.00±0.06 1.00±0.06 1.00±0.06",
        "excess kurtosis at d = 4": "1.50±0.20",
    },
    verdict="partly",
    note="For independent numbers of unit variance, the variance is d. The distribution is normal only for large d: "
    "Gaussian q and k give an excess kurtosis of 6 / d.",
).measured
def variance() -> dict[str, object]:
    def products(count: int, d: int) -> Tensor:
        return (torch.randn(count, d) * torch.randn(count, d)).sum(-1).double()

    small = products(400_000, 4)
    return {
        "variance / d at d = 4, 16, 64, 256, 512, 1024": [
            products(10_000, d).var() / d for d in (4, 16, 64, 256, 512, 1024)
        ],
        "excess kurtosis at d = 4": (small - small.mean()).pow(4).mean() / small.var() ** 2 - 3,
    }


@Claim(
    "N-20",
    "Saturation of the softmax, 32 keys",
    f"{MISSAOUI}; {COURSE}",
    lecture="unscaled, the softmax saturates and gradients vanish; scaling preserves the ranking",
    true={
        "largest weight at d = 16, 64, 512": "0.630±0.02 0.816±0.02 0.937±0.02",
        "scaled": "0.163±0.015 0.164±0.015 0.165±0.015",
        "norm of the softmax's Jacobian": "0.289±0.02 0.197±0.02 0.081±0.02",
        "norm, scaled": "0.240±0.01 0.241±0.01 0.241±0.01",
        "entropy": "1.13±0.05 0.50±0.05 0.16±0.03",
        "entropy, scaled": "3.02±0.05 3.02±0.05 3.01±0.05",
        "queries whose best key changes": "0 0 0",
    },
    verdict="right",
    note="Measured on 4,000 random queries a dimension; the true values come from ten times as many, and from 16,000 "
    "at 512. Equal weights would have the entropy 3.466.",
).measured
def saturation() -> dict[str, list[Tensor]]:
    found = [_saturation(d) for d in (16, 64, 512)]
    return {name: [numbers[name] for numbers in found] for name in found[0]}


def _saturation(d: int) -> dict[str, Tensor]:
    q, k = torch.randn(400, 1, 10, d), torch.randn(400, 1, 32, d)
    plain, scaled = (ScaledDotProduct(d, scaled=scaled).weights(q, k) for scaled in (False, True))
    return {
        "largest weight at d = 16, 64, 512": plain.amax(-1).mean(),
        "scaled": scaled.amax(-1).mean(),
        "norm of the softmax's Jacobian": _jacobian_norm(plain).mean(),
        "norm, scaled": _jacobian_norm(scaled).mean(),
        "entropy": entropy(plain).mean(),
        "entropy, scaled": entropy(scaled).mean(),
        "queries whose best key changes": (plain.argmax(-1) != scaled.argmax(-1)).sum(),
    }


def _jacobian_norm(w: Tensor) -> Tensor:
    """Return the Frobenius norm of diag(w) - w wᵀ: sqrt(sum w² - 2 sum w³ + (sum w²)²)."""
    squares = w.square().sum(-1)
    return (squares - 2 * w.pow(3).sum(-1) + squares.square()).clamp_min(0).sqrt()
