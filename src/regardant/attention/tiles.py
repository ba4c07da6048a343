"""Softmax over some of the keys, a tile of queries and keys at a time: no n x n tensor is built.

A tile returns the weighted values of its keys and the sum of their exponentials. Two such partial softmaxes, over
different keys of the same queries, merge into the softmax over all their keys. This is the online softmax (Milakov and
Gimelshein 2018, https://arxiv.org/abs/1805.02867) of flash attention (Dao et al. 2022,
https://arxiv.org/abs/2205.14135). As there, the backward pass recomputes the weights of a tile from the saved result.

Shape legend: as in `attention.interface`; T queries of a tile, U keys of a tile.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from regardant.attention.masks import View, softmax_dtype
from regardant.attention.softmax import exact, nonzero

Tile = tuple[slice, slice]
"""Rows (queries) and columns (keys) of a tile in the matrix of all pairs. Slices may have steps."""

AdditiveMask = Callable[[slice, slice], Tensor]
"""Function of the rows and columns of a tile. Returns the tensor added to its scores [#B, #H, T, U], -inf if masked."""

Pattern = Callable[[Int[Tensor, " Q"], Int[Tensor, " K"]], Bool[Tensor, "Q K"]]
"""Function of the positions of queries and keys. Returns the mask of pairs that may attend."""

SMALLEST_BLOCK, LARGEST_BLOCK = 64, 128
"""Limits of the queries of a tile: with fewer, calls cost more; with more, masked pairs cost more."""


class PartialSoftmax(NamedTuple):
    """Softmax over some of the keys, and its weight in a merge with the softmax over others."""

    mixed: Float[Tensor, "*B T E"]
    """Weighted values; zeros for a fully masked query."""
    total: Float[Tensor, "*B T 1"]
    """sum_j exp(score_j - top); 0 for a fully masked query."""
    top: Float[Tensor, "*B T 1"]
    """Largest score, or the lowest finite number of the dtype for a fully masked query. No gradient: it cancels."""

    def merge(self, other: "PartialSoftmax") -> "PartialSoftmax":
        """Return the softmax over the keys of both."""
        top = torch.maximum(self.top, other.top)
        mine, others = self.total * (self.top - top).exp(), other.total * (other.top - top).exp()
        total = mine + others
        return PartialSoftmax(torch.lerp(self.mixed, other.mixed, others / nonzero(total)), total, top)


def attend(
    q: Float[Tensor, "*B T D"],
    k: Float[Tensor, "*B U D"],
    v: Float[Tensor, "*B U E"],
    added: Tensor,
    scale: float,
) -> PartialSoftmax:
    """Attend within one tile. `added` broadcasts to [*B, T, U] and is -inf at masked pairs."""
    dtype = softmax_dtype(q)
    scores = torch.add(added, (q @ k.mT).to(dtype), alpha=scale)
    top = scores.detach().amax(-1, keepdim=True).clamp_min(torch.finfo(dtype).min)
    weights = scores.sub_(top).exp_()
    total = weights.sum(-1, keepdim=True)
    return PartialSoftmax((weights.to(v.dtype) @ v).to(dtype) / nonzero(total), total, top)


def attend_tiles(
    q: Float[Tensor, "B H Q D"],
    k: Float[Tensor, "B H K D"],
    v: Float[Tensor, "B H K E"],
    tiles: Sequence[Tile],
    added: AdditiveMask,
    scale: float,
) -> PartialSoftmax:
    """Attend within tiles, each query in one of them. Only inputs and outputs are kept for the backward pass.

    If the additive mask needs a gradient (a learned bias), the masks of all tiles are kept as well.
    """
    learns = torch.is_grad_enabled() and added(slice(0, 1), slice(0, 1)).requires_grad
    learned = [added(*tile) for tile in tiles] if learns else []
    return PartialSoftmax(*_Tiles.apply(q, k, v, tiles, added, scale, *learned))  # type: ignore[no-untyped-call]


def additive_mask_of(
    view: View, queries: Tensor, keys: Tensor, dtype: torch.dtype, pattern: Pattern | None = None
) -> AdditiveMask:
    """Return the additive mask of a view and a pattern, for queries and keys at these positions.

    The padding of the view is in the order of `keys`.
    """
    return partial(_additive_mask, view, queries, keys, dtype, pattern)


def _additive_mask(
    view: View, queries: Tensor, keys: Tensor, dtype: torch.dtype, pattern: Pattern | None, rows: slice, columns: slice
) -> Tensor:
    at_rows, at_columns = queries[rows], keys[columns]
    everything = torch.ones(1, 1, len(at_rows), len(at_columns), dtype=torch.bool, device=keys.device)
    mask = everything if pattern is None else pattern(at_rows, at_columns)[None, None]
    if view.causal:
        mask = mask & (at_columns[None, :] <= at_rows[:, None])
    if view.keys is not None:
        mask = mask & view.keys[:, None, None, columns]
    if view.pairs is not None:
        mask = mask & view.pairs[:, :, rows, columns]
    additive_mask = torch.zeros(mask.shape, dtype=dtype, device=keys.device).masked_fill_(~mask, float("-inf"))
    bias = view.bias_between(at_rows, at_columns, dtype)
    return additive_mask if bias is None else additive_mask + bias


def blocks(start: int, end: int, size: int = LARGEST_BLOCK) -> Iterator[slice]:
    """Yield slices of `size` from `start` to `end`."""
    for at in range(start, end, size):
        yield slice(at, min(at + size, end))


def near_tiles(length: int, *, before: int, after: int, start: int = 0) -> list[Tile]:
    """Return tiles of the queries from `start` on, with the keys up to `before` tokens earlier and `after` later."""
    size = min(max(before, after, SMALLEST_BLOCK), LARGEST_BLOCK)
    return [
        (rows, slice(max(0, rows.start - before), min(length, rows.stop + after)))
        for rows in blocks(start, length, size)
    ]


class _Tiles(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        tiles: Sequence[Tile],
        added: AdditiveMask,
        scale: float,
        *learned: Tensor,
    ) -> tuple[Tensor, ...]:
        dtype = softmax_dtype(q)
        whole = [q.new_empty(*q.shape[:3], size, dtype=dtype) for size in (v.shape[3], 1, 1)]
        with exact(q):
            for number, (rows, columns) in enumerate(tiles):
                tile = learned[number] if learned else added(rows, columns)
                part = attend(q[:, :, rows], k[:, :, columns], v[:, :, columns], tile, scale)
                for tensor, piece in zip(whole, part, strict=True):
                    tensor[:, :, rows] = piece
        ctx.tiles, ctx.added, ctx.scale = tiles, added, scale
        ctx.save_for_backward(q, k, v, *whole, *learned)
        ctx.mark_non_differentiable(whole[2])
        return tuple(whole)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, mixed, total, top, *learned = ctx.saved_tensors
        to_mixed, to_total, _ = gradients
        to_q = torch.empty_like(q, dtype=mixed.dtype)
        to_k, to_v = (torch.zeros_like(x, dtype=mixed.dtype) for x in (k, v))
        to_learned = []
        with exact(q):
            for number, (rows, columns) in enumerate(ctx.tiles):
                tile = learned[number] if learned else ctx.added(rows, columns)
                at_q, at_k, at_v, gradient = q[:, :, rows], k[:, :, columns], v[:, :, columns], to_mixed[:, :, rows]
                # d score = weight (gradient . value - gradient . mixed + d total) of normalised weights.
                shift = to_total[:, :, rows] * total[:, :, rows] - (gradient * mixed[:, :, rows]).sum(-1, keepdim=True)
                log_total = top[:, :, rows] + nonzero(total[:, :, rows]).log()
                scores = torch.add(tile, (at_q @ at_k.mT).to(mixed.dtype), alpha=ctx.scale)
                weights, gradient = scores.sub_(log_total).exp_(), gradient.to(v.dtype)
                to_v[:, :, columns] += weights.to(v.dtype).mT @ gradient
                to_scores = (gradient @ at_v.mT).to(mixed.dtype).add_(shift).mul_(weights)
                if learned:
                    to_learned.append(to_scores.sum_to_size(tile.shape))
                to_scores = to_scores.to(q.dtype)
                to_q[:, :, rows] = (to_scores @ at_k).mul_(ctx.scale)
                to_k[:, :, columns].add_(to_scores.mT @ at_q, alpha=ctx.scale)
        return to_q.to(q.dtype), to_k.to(k.dtype), to_v.to(v.dtype), None, None, None, *to_learned
