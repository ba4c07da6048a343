"""Mechanisms that score each pair and normalise over keys. Unless they override `mix`, they build the whole matrix."""

import math

from jaxtyping import Float
from torch import Tensor

from regardant.attention.interface import Attention, Keys, Queries, Weights
from regardant.attention.masks import View, softmax_dtype
from regardant.attention.softmax import exact, masked_softmax


class ScoredAttention(Attention):
    """Softmax of any score. Write `compute_scores`."""

    def compute_weights(self, q: Queries, k: Keys, view: View) -> Weights:
        return masked_softmax(self.compute_scores(q, k, view), q, k, view)


class DotProductAttention(Attention):
    """Scaled dot products with a normaliser other than the softmax. Write `normalise`."""

    shared_beam_cache = True

    def __init__(self, head_size: int) -> None:
        super().__init__()
        self.scale = 1 / math.sqrt(head_size)

    def normalise(self, scores: Float[Tensor, "B H Q K"]) -> Weights:
        """Return weights whose rows sum to one. Masked pairs score -inf, and no row is fully masked."""
        raise NotImplementedError

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        with exact(q):  # rounded scores would tie
            return q.to(softmax_dtype(q)) @ k.to(softmax_dtype(k)).mT * self.scale

    def compute_weights(self, q: Queries, k: Keys, view: View) -> Weights:
        scores = self.compute_scores(q, k, view)
        added, fully_masked = view.additive_mask(q, k), view.fully_masked(q, k)
        if added is not None:
            scores = scores + added
        if fully_masked is None:
            return self.normalise(scores)
        return self.normalise(scores.masked_fill(fully_masked, 0)).masked_fill(fully_masked, 0)
