"""Attention along listed pairs: only pairs that a sparse mask allows are computed, such as the edges of a graph.

The cost is linear in these pairs: 13,264 of 7.3 million for the 2,708 nodes of Cora. `View.listed_pairs` lists them.

Shape legend: as in `attention.interface`; P pairs.
"""

from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.attention.interface import Keys, Mixed, Queries, Values
from regardant.attention.masks import softmax_dtype
from regardant.attention.softmax import exact, nonzero

PairScore = Callable[[Float[Tensor, "B H P D"], Float[Tensor, "B H P D"]], Float[Tensor, "B H P"]]
"""Function from the query and the key of each pair to its score."""


def attend_along(pairs: Int[Tensor, "2 P"], score: PairScore, drop: nn.Module, q: Queries, k: Keys, v: Values) -> Mixed:
    """Return the values mixed by the softmax of the scores over the pairs of each query; zeros if there are none.

    drop: dropout of the weights, or the identity.
    """
    queries, keys = pairs
    scores = score(q.index_select(2, queries), k.index_select(2, keys)).to(softmax_dtype(q))
    with exact(q):
        places = queries.expand_as(scores)
        largest = scores.new_zeros(*scores.shape[:2], q.shape[2])
        largest = largest.scatter_reduce(2, places, scores.detach(), "amax", include_self=False)
        weights = (scores - largest.gather(2, places)).exp()
        total = scores.new_zeros(largest.shape).index_add(2, queries, weights)
        return sum_along(pairs, drop(weights / nonzero(total).gather(2, places)), v, q.shape[2])


def sum_along(pairs: Int[Tensor, "2 P"], weights: Float[Tensor, "*B P"], v: Values, num_queries: int) -> Mixed:
    """Return the sum of values over the pairs of each query, each multiplied by the weight of its pair."""
    queries, keys = pairs
    weighted = weights[..., None] * v.index_select(2, keys)  # in the wider type, so that the sum is too
    total = weighted.new_zeros(*v.shape[:2], num_queries, v.shape[3])
    return total.index_add(2, queries, weighted).to(v.dtype)
