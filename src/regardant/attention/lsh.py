"""Reformer: a query attends to the keys in its own hash bucket. Sorting by bucket costs n log n.

A random rotation hashes vectors of similar direction to the same bucket. Queries and keys share one projection, so
that the query of a token hashes as its key does. With several rounds of hashing a query attends to the union of its
buckets, in which each pair counts once. Kitaev et al. 2020, "Reformer", https://arxiv.org/abs/2001.04451, section 2.

Three choices differ from the paper or extend it. The paper cuts the sorted sequence into chunks, whose edges move with
every later token; here a query attends to the `reach` nearest keys of its bucket, by position, so that later tokens
change no earlier output. Padding, and any other masked key, has a bucket of its own. The paper normalises keys
(k = q / |q|); here keys keep their lengths, so that attention within a bucket is scaled dot-product attention. As in
the paper, the score of a token with itself is lowered so far that the token attends to itself only if there is no other
key.

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
from regardant.attention.tiles import AdditiveMask, PartialSoftmax, attend_tiles, near_tiles

SELF_SCORE = -1e5
"""Number added to the score of a token with itself (section 2, "causal masking")."""

MOST_BUCKETS, LONGEST_REACH = 1 << 10, 1 << 20
"""Limits of settings. Addresses, up to buckets x reach + tokens, are 32 bits wide, since each pair compares two: past
2^31 they would wrap, and tokens of different buckets would meet."""


class LSHConfig(AttentionConfig):
    """Softmax over keys that hash alike. Queries and keys share a projection."""

    kind: Literal["lsh"] = "lsh"

    num_buckets: int = Field(32, gt=1, le=MOST_BUCKETS, multiple_of=2)
    """Number of buckets in each round of hashing."""

    num_rounds: int = Field(2, gt=0)
    """Number of hashing rounds. A query attends to the union of its buckets."""

    reach: int = Field(64, gt=0, le=LONGEST_REACH)
    """Maximum number of keys of its bucket that a query attends to, on each side and in each round."""

    def build(self, *, num_heads: int, head_size: int) -> "LSH":
        return LSH(self, num_heads, head_size)


class LSH(Attention):
    """Attention within hash buckets. Rotations are drawn once and stored; `redraw` draws them again.

    A query and the key of the same token have the same bucket: the layer projects both by one matrix.
    """

    honours = frozenset({"causal", "keys"})
    discontinuous = True
    reads_order = True
    shares_query_and_key = True
    rotations: Tensor
    """[R, H, D, num_buckets / 2]"""

    def __init__(self, config: LSHConfig, num_heads: int, head_size: int) -> None:
        super().__init__()
        self.scale = 1 / math.sqrt(head_size)
        self.reach = config.reach
        self.no_address = -1 - config.reach
        """Address of a token that attends to no key and is attended to by none."""
        shape = (config.num_rounds, num_heads, head_size, config.num_buckets // 2)
        self.register_buffer("rotations", torch.randn(shape))

    def redraw(self) -> None:
        self.rotations.normal_()

    def mask(self, q: Queries, k: Keys, view: View) -> Bool[Tensor, "B H Q K"]:
        addresses = self._addresses(k, view)
        # Queries are the last of the tokens; a query at a position before all keys has no key to hash.
        queries = F.pad(addresses, (q.shape[2] - k.shape[2], 0), value=self.no_address)
        rounds = ((mine[..., None] - keys[..., None, :]).abs() for mine, keys in zip(queries, addresses, strict=True))
        return functools.reduce(torch.minimum, rounds) <= self.reach

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        at_queries, at_keys = view.positions(q, k)
        scores = (q @ k.mT).to(softmax_dtype(q)) * self.scale
        itself = (at_queries[:, None] == at_keys).to(scores.dtype)
        return scores + SELF_SCORE * itself

    def compute_weights(self, q: Queries, k: Keys, view: View) -> Weights:
        return masked_softmax(self.compute_scores(q, k, view), q, k, replace(view, pairs=self.mask(q, k, view)))

    def mix(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed:
        if q.shape[2] != k.shape[2]:
            return super().mix(q, k, v, view)
        addresses = self._addresses(k, view)
        rounds = (self._attend(q, k, v, view, addresses[: number + 1]) for number in range(len(addresses)))
        return functools.reduce(PartialSoftmax.merge, rounds).mixed.to(v.dtype)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, view: View, addresses: Int[Tensor, "R B H N"]) -> PartialSoftmax:
        """Attend in the last of these rounds, without the pairs of the earlier rounds.

        When tokens are sorted by address, each attends to its neighbours.
        """
        order = addresses[-1].argsort(-1)  # the token at each place
        places = order.argsort(-1)
        q, k, v = (_Permute.apply(x, order, places) for x in (q, k, v))  # type: ignore[no-untyped-call]
        queries = addresses.gather(-1, order.expand_as(addresses))
        keys = queries
        if view.keys is not None:
            real = view.keys[:, None].expand_as(order).gather(-1, order)
            keys = queries.masked_fill(~real, self.no_address)
        added = self._additive_mask(queries, keys, view.causal, softmax_dtype(q))
        tiles = near_tiles(order.shape[-1], before=self.reach, after=0 if view.causal else self.reach)
        part = attend_tiles(q, k, v, tiles, added, self.scale)
        return PartialSoftmax(*(_Permute.apply(piece, places, order) for piece in part))  # type: ignore[no-untyped-call]

    def _additive_mask(self, queries: Tensor, keys: Tensor, causal: bool, dtype: torch.dtype) -> AdditiveMask:
        """Return the additive mask of tokens that are sorted by the last of their addresses [R, B, H, N]."""

        def added(rows: slice, columns: slice) -> Tensor:
            away = queries[..., rows, None] - keys[..., None, columns]
            near = away.abs() <= self.reach
            mask = near[-1] & ~near[:-1].any(0)
            if causal:  # within a bucket addresses are in the order of positions
                mask &= away[-1] >= 0
            itself = (away[-1] == 0).to(dtype) * SELF_SCORE
            return itself.masked_fill_(~mask, float("-inf"))

        return added

    @torch.no_grad()
    def _addresses(self, k: Keys, view: View) -> Int[Tensor, "R B H K"]:
        """Return an address for each token and round: two tokens attend if theirs differ by at most `reach`.

        Addresses are indices into a list of all buckets, each in order of position, with `reach` gaps in between.
        """
        with exact(k):
            numbers = k.to(softmax_dtype(k))
            turned = torch.einsum("bhnd,rhdm->rbhnm", numbers, self.rotations.to(numbers.dtype))
        buckets = torch.cat([turned, -turned], -1).argmax(-1)
        if view.keys is not None:
            buckets = buckets.masked_fill(~view.keys[None, :, None, :], 2 * turned.shape[-1])
        places = buckets.argsort(stable=True, dim=-1).argsort(-1)
        return (places + buckets * self.reach).int()


class _Permute(torch.autograd.Function):
    """Permutation of rows. Its gradient is permuted back: autograd would add rows, since an index may repeat."""

    @staticmethod
    def forward(ctx: Any, x: Float[Tensor, "B H N E"], order: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        return _take_rows(x, order)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _take_rows(gradients[0], ctx.saved_tensors[0]), None, None


def _take_rows(x: Tensor, order: Tensor) -> Tensor:
    """Return x [B, H, N, .] in the order [B, H, N]."""
    rows = torch.arange(order[..., 0].numel(), device=x.device).view(*order.shape[:2], 1) * order.shape[2] + order
    # By one flat index each row is copied at once, which is five times as fast as by three indices.
    return x.flatten(0, 2).index_select(0, rows.flatten()).view(*order.shape, x.shape[3])
