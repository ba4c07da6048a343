"""Flash attention in readable form: exact attention a tile at a time, without holding a whole row of scores.

For each block of queries the blocks of keys are attended to one after the other. The result so far and the result of
the next block are averaged by the sums of their exponentials, so that the final result is that of one softmax. `sdpa`
is the fast implementation of the same algorithm. Here autograd keeps every tile for the backward pass, which
`tiles.attend_tiles` avoids. Dao et al. 2022, https://arxiv.org/abs/2205.14135, algorithm 1.

Shape legend: as in `attention.interface`.
"""

from functools import reduce

import torch

from regardant.attention.interface import Keys, Mixed, Queries, Values
from regardant.attention.masks import View, softmax_dtype
from regardant.attention.tiles import PartialSoftmax, additive_mask_of, attend, blocks


def online_softmax(q: Queries, k: Keys, v: Values, view: View, scale: float) -> Mixed:
    """Return the same result as `sdpa`."""
    added = additive_mask_of(view, *view.positions(q, k), softmax_dtype(q))
    mixed = []
    for rows in blocks(0, q.shape[2]):
        parts = (
            attend(q[:, :, rows], k[:, :, columns], v[:, :, columns], added(rows, columns), scale)
            for columns in blocks(0, k.shape[2])
        )
        mixed.append(reduce(PartialSoftmax.merge, parts).mixed)
    return torch.cat(mixed, 2).to(v.dtype)
