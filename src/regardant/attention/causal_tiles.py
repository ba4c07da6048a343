"""Causal attention in bfloat16 by products of whole tiles: a block of queries, and all keys up to its last query.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, eq. 1. On a CPU it trains faster than PyTorch's flash kernel; see
docs/decisions/0004. The backward pass recomputes the weights: no n x n tensor is kept.

Shape legend: as in `attention.interface`, with as many queries as keys; T queries of a tile, U keys up to its end.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regardant.attention.interface import Keys, Mixed, Queries, Values
from regardant.attention.softmax import exact
from regardant.attention.tiles import blocks

TILE = 256
"""Number of queries of a tile: with fewer, products are small; with more, half of a larger square is masked."""


def attend_in_causal_tiles(q: Queries, k: Keys, v: Values, scale: float) -> Mixed:
    """Return softmax(scale Q K^T) V under a causal mask. Scores are rounded to bfloat16."""
    q, k, v = (x.bfloat16().contiguous() for x in (q * scale, k, v))
    with exact(q):
        mixed: Tensor = _CausalTiles.apply(q, k, v)  # type: ignore[no-untyped-call]
    return mixed


def _weights(q: Float[Tensor, "H T D"], k: Float[Tensor, "H U D"]) -> Float[Tensor, "H T U"]:
    """Return the causal weights of the queries at the last T of U positions."""
    size = q.shape[1]
    scores = q @ k.mT
    scores[..., -size:] += scores.new_full((size, size), -torch.inf).triu(1)
    return torch.softmax(scores, -1)


class _CausalTiles(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mixed = torch.empty_like(v)
        for q_row, k_row, v_row, mixed_row in zip(q, k, v, mixed, strict=True):
            for tile in blocks(0, q.shape[2], TILE):
                mixed_row[:, tile] = _weights(q_row[:, tile], k_row[:, : tile.stop]) @ v_row[:, : tile.stop]
        ctx.save_for_backward(q, k, v)
        return mixed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = ctx.saved_tensors
        to_q = torch.empty_like(q)
        to_k, to_v = (torch.zeros_like(x, dtype=torch.float32) for x in (k, v))  # sums over tiles
        for row, gradient in enumerate(gradients[0].contiguous()):
            for tile in blocks(0, q.shape[2], TILE):
                keys = slice(tile.stop)
                at_q, at_k, at_v, to_mixed = q[row, :, tile], k[row, :, keys], v[row, :, keys], gradient[:, tile]
                weights = _weights(at_q, at_k)
                to_v[row, :, keys] += weights.mT @ to_mixed
                to_scores = torch._softmax_backward_data(to_mixed @ at_v.mT, weights, -1, weights.dtype)
                to_q[row, :, tile] = to_scores @ at_k
                to_k[row, :, keys] += to_scores.mT @ at_q
        return to_q, to_k.to(k.dtype), to_v.to(v.dtype)
