"""Mechanisms that score each pair and normalise over keys, with the whole matrix built."""

import math

from jaxtyping import Float
from torch import Tensor

from regardant.attention.base import Attention, Keys, Queries, View, Weights, exact, masked_softmax, softmax_dtype


class ScoredAttention(Attention):
    """Write the score."""

    def score(self, q: Queries, k: Keys) -> Float[Tensor, "B H Q K"]:
        """How well each key answers each query: any number."""
        raise NotImplementedError

    def compare(self, q: Queries, k: Keys, view: View) -> Weights:
        return self.score(q, k).to(softmax_dtype(q))

    def weigh(self, q: Queries, k: Keys, view: View) -> Weights:
        return masked_softmax(self.compare(q, k, view), q, k, view)


class DotProductAttention(Attention):
    """Scaled dot products under another normaliser than the softmax. Write `normalise`."""

    beams_share = True

    def __init__(self, head_size: int) -> None:
        super().__init__()
        self.scale = 1 / math.sqrt(head_size)

    def normalise(self, scores: Float[Tensor, "B H Q K"]) -> Weights:
        """Scores to weights whose rows sum to one. A pair that may not meet scores -inf; no row is all of them."""
        raise NotImplementedError

    def compare(self, q: Queries, k: Keys, view: View) -> Weights:
        with exact(q):  # rounded scores would tie
            return q.to(softmax_dtype(q)) @ k.to(softmax_dtype(k)).mT * self.scale

    def weigh(self, q: Queries, k: Keys, view: View) -> Weights:
        scores = self.compare(q, k, view)
        added, blind = view.additive(q, k), view.blind(q, k)
        if added is not None:
            scores = scores + added
        if blind is None:
            return self.normalise(scores)
        return self.normalise(scores.masked_fill(blind, 0)).masked_fill(blind, 0)
