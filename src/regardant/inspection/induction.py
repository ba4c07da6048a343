"""Induction heads, which attend to the token after the previous occurrence of the current token.

Olsson et al. 2022, "In-context learning and induction heads", https://arxiv.org/abs/2209.11895.

Shape legend: B batch, H heads, T tokens.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def induction_scores(weights: Float[Tensor, "B H T S"], text: Int[Tensor, "B L"]) -> Float[Tensor, " H"]:
    """Return the mean weight of each head on the token after the last earlier occurrence of the query's own token.

    weights: causal self-attention over the first T = S tokens of the texts, which have no padding. Queries whose token
    is new are left out, and so are those that repeat the token before them: the token after that one is the query.
    1: a perfect induction head. Uniform attention over t keys scores 1 / t.

    Raises:
        ValueError: no token of the texts occurs twice with another one between.
    """
    length = weights.shape[2]
    text = text[:, :length]
    same = (text[:, :, None] == text[:, None, :]) & torch.ones(length, length, dtype=torch.bool).tril(-1)
    at = torch.arange(length)
    last = torch.where(same, at, -1).amax(-1)
    after = (last + 1).clamp_min(0)
    found = (last >= 0) & (after < at)
    if not found.any():
        raise ValueError("no token occurs twice with another one between: give a longer text")
    on_it = weights.gather(3, after[:, None, :, None].expand(-1, weights.shape[1], -1, 1))[..., 0]
    return (on_it * found[:, None]).sum((0, 2)) / found.sum()
