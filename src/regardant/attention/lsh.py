"""Reformer: a query sees the keys that hash alike, so that n log n is spent on finding who matters.

Vectors that point the same way fall into the same bucket of a random rotation; queries and keys share a projection,
so that a token's query finds its like. Kitaev et al. 2020, "Reformer", https://arxiv.org/abs/2001.04451, section 2.
Several rounds of hashing see the union of their buckets, each pair counted once.

Unlike the paper, where a sorted sequence is cut into chunks whose edges move with every later token, a query sees the
`reach` nearest keys of its own bucket, by position: what comes later then never changes what was. Padding has a
bucket of its own. And keys keep their lengths, where the paper divides them by those (k = q / |q|), so that within a
bucket this is scaled dot-product attention. A token sees itself last, with what weight is left when it has nobody
else, as in the paper.

Shape legend: as in `attention.interface`; R rounds, N tokens.
"""

import functools
import math
from dataclasses import replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor
from torch.autograd.function import once_differentiable

from regardant.attention.interface import Attention, AttentionConfig, Keys, Mixed, Queries, Values, Weights
from regardant.attention.masks import View, softmax_dtype
from regardant.attention.softmax import exact, masked_softmax
from regardant.attention.tiles import Added, Part, attend_tiles, near_tiles

ITSELF = -1e5
"""Added to a token's score with itself (section 2, "causal masking"): it counts where there is no other."""


class LSHConfig(AttentionConfig):
    """Softmax over keys that hash alike. Queries and keys share a projection."""

    kind: Literal["lsh"] = "lsh"

    num_buckets: int = Field(32, gt=1, multiple_of=2)
    """Buckets of a round of hashing."""

    num_rounds: int = Field(2, gt=0)
    """Rounds of hashing; a query sees the union of its buckets."""

    reach: int = Field(64, gt=0)
    """The most keys of its own bucket that a query sees to each side, in each round."""

    def build(self, *, num_heads: int, head_size: int) -> "LSH":
        return LSH(self, num_heads, head_size)


class LSH(Attention):
    """Its rotations are drawn once, kept with the weights, and drawn anew by `redraw`.

    A query's bucket is that of its own token's key: the layer makes both by one projection.
    """

    honours = frozenset({"causal", "keys"})
    shares_query_and_key = True
    rotations: Tensor
    """[R, H, D, num_buckets / 2]"""

    def __init__(self, config: LSHConfig, num_heads: int, head_size: int) -> None:
        super().__init__()
        self.scale = 1 / math.sqrt(head_size)
        self.reach = config.reach
        self.nowhere = -1 - config.reach
        """The address of who meets nobody."""
        shape = (config.num_rounds, num_heads, head_size, config.num_buckets // 2)
        self.register_buffer("rotations", torch.randn(shape))

    def redraw(self) -> None:
        self.rotations.normal_()

    def mask(self, q: Queries, k: Keys, view: View) -> Bool[Tensor, "B H Q K"]:
        addresses = self._addresses(k, view)
        # The queries are the last of the tokens; one that stands before all keys has no key to hash.
        queries = F.pad(addresses, (q.shape[2] - k.shape[2], 0), value=self.nowhere)
        rounds = ((mine[..., None] - keys[..., None, :]).abs() for mine, keys in zip(queries, addresses, strict=True))
        return functools.reduce(torch.minimum, rounds) <= self.reach

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        at_queries, at_keys = view.positions(q, k)
        scores = (q @ k.mT).to(softmax_dtype(q)) * self.scale
        itself = (at_queries[:, None] == at_keys).to(scores.dtype)
        return scores + ITSELF * itself

    def compute_weights(self, q: Queries, k: Keys, view: View) -> Weights:
        return masked_softmax(self.compute_scores(q, k, view), q, k, replace(view, pairs=self.mask(q, k, view)))

    def mix(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed:
        if q.shape[2] != k.shape[2]:
            return super().mix(q, k, v, view)
        addresses = self._addresses(k, view)
        rounds = (self._attend(q, k, v, view, addresses[: number + 1]) for number in range(len(addresses)))
        return functools.reduce(Part.merge, rounds).mixed.to(v.dtype)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, view: View, addresses: Int[Tensor, "R B H N"]) -> Part:
        """The last of these rounds: sorted by address, a token sees its neighbours; those before have had theirs."""
        order = addresses[-1].argsort(-1)  # the token at each place
        places = order.argsort(-1)
        q, k, v = (_Permuted.apply(x, order, places) for x in (q, k, v))  # type: ignore[no-untyped-call]
        queries = addresses.gather(-1, order.expand_as(addresses))
        keys = queries
        if view.keys is not None:
            real = view.keys[:, None].expand_as(order).gather(-1, order)
            keys = queries.masked_fill(~real, self.nowhere)
        added = self._added(queries, keys, view.causal, softmax_dtype(q))
        tiles = near_tiles(order.shape[-1], before=self.reach, after=0 if view.causal else self.reach)
        part = attend_tiles(q, k, v, tiles, added, self.scale)
        return Part(*(_Permuted.apply(piece, places, order) for piece in part))  # type: ignore[no-untyped-call]

    def _added(self, queries: Tensor, keys: Tensor, causal: bool, dtype: torch.dtype) -> Added:
        """From the addresses [R, B, H, N] of tokens sorted by the last of them."""

        def added(rows: slice, columns: slice) -> Tensor:
            away = queries[..., rows, None] - keys[..., None, columns]
            near = away.abs() <= self.reach
            mask = near[-1] & ~near[:-1].any(0)
            if causal:  # inside a bucket addresses go by position
                mask &= away[-1] >= 0
            itself = (away[-1] == 0).to(dtype) * ITSELF
            return itself.masked_fill_(~mask, float("-inf"))

        return added

    @torch.no_grad()
    def _addresses(self, k: Keys, view: View) -> Int[Tensor, "R B H K"]:
        """Two tokens meet in a round if their addresses differ by at most `reach`.

        Buckets follow each other, each in order of position, with `reach` empty places in between.
        """
        with exact(k):
            numbers = k.to(softmax_dtype(k))
            turned = torch.einsum("bhnd,rhdm->rbhnm", numbers, self.rotations.to(numbers.dtype))
        buckets = torch.cat([turned, -turned], -1).argmax(-1)
        if view.keys is not None:
            buckets = buckets.masked_fill(~view.keys[None, :, None, :], 2 * turned.shape[-1])
        places = buckets.argsort(stable=True, dim=-1).argsort(-1)
        return (places + buckets * self.reach).int()


class _Permuted(torch.autograd.Function):
    """Rows in another order. The gradient takes the way back; to autograd a row might have been taken twice."""

    @staticmethod
    def forward(ctx: Any, x: Float[Tensor, "B H N E"], order: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        return _taken(x, order)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _taken(gradients[0], ctx.saved_tensors[0]), None, None


def _taken(x: Tensor, order: Tensor) -> Tensor:
    """x [B, H, N, .] in the order [B, H, N]."""
    rows = torch.arange(order[..., 0].numel(), device=x.device).view(*order.shape[:2], 1) * order.shape[2] + order
    # As one list of rows: each is copied in one go, five times as fast as by three indices.
    return x.flatten(0, 2).index_select(0, rows.flatten()).view(*order.shape, x.shape[3])
