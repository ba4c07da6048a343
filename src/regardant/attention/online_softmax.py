"""Flash attention to read: exact attention a tile at a time, with a softmax that never sees a whole row.

For each block of queries the keys go by in blocks. What has been mixed so far gives way to what the next block mixes,
as much as the weight behind the one and the other asks, so that in the end it is as if all keys had been known from
the start. The fast implementation of the same idea is `sdpa`; here autograd keeps every tile for the backward pass,
which `tiles.attend_tiles` avoids. Dao et al. 2022, https://arxiv.org/abs/2205.14135, algorithm 1.

Shape legend: as in `attention.interface`.
"""

from functools import reduce

import torch

from regardant.attention.interface import Keys, Mixed, Queries, Values
from regardant.attention.masks import View, softmax_dtype
from regardant.attention.tiles import Part, added_by, attend, blocks


def online_softmax(q: Queries, k: Keys, v: Values, view: View, scale: float) -> Mixed:
    """What `sdpa` gives, in plain sight."""
    added = added_by(view, *view.positions(q, k), softmax_dtype(q))
    mixed = []
    for rows in blocks(0, q.shape[2]):
        parts = (
            attend(q[:, :, rows], k[:, :, columns], v[:, :, columns], added(rows, columns), scale)
            for columns in blocks(0, k.shape[2])
        )
        mixed.append(reduce(Part.merge, parts).mixed)
    return torch.cat(mixed, 2).to(v.dtype)
