"""Luong's predictive local attention (local-p): each query predicts a position and attends to keys near it.

p = (S - 1) sigmoid(v . tanh(W q)) with S source tokens, counted from 0. Keys further than `window` from p are masked,
and the weights of the others are softmax(q . k - (j - p)^2 / (2 sigma^2)) with sigma = window / 2. Luong et al. 2015,
https://arxiv.org/abs/1508.04025, section 3.2, where p = S sigmoid(...), and the Gaussian is multiplied after the
softmax, so that rows no longer sum to one; here it is inside. Monotonic local attention (local-m) is `window` at the
target position, but with scaled dot products.

The source reaches from the first real key to the last. So a key that is masked between them moves no window, while a
masked first or last key shortens the source. A query whose window holds masked keys alone mixes to zeros.
"""

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from regardant.attention.interface import Attention, AttentionConfig, Keys, Queries, Weights, multiply_heads
from regardant.attention.masks import View, softmax_dtype
from regardant.attention.softmax import exact, masked_softmax


class LocalPredictiveConfig(AttentionConfig):
    """Softmax near a position that the query predicts."""

    kind: Literal["local_predictive"] = "local_predictive"

    window: float = Field(10.0, ge=1)
    """Largest distance from the predicted position to a key, in tokens."""

    def build(self, *, num_heads: int, head_size: int) -> "LocalPredictive":
        return LocalPredictive(self.window, num_heads, head_size)


class LocalPredictive(Attention):
    """Attention near a predicted position, which is a share of the source length: no causal mask is possible."""

    honours = frozenset({"keys"})
    reads_order = True
    why_not: ClassVar[dict[str, str]] = {"causal": "a place is predicted as a share of the whole source"}

    def __init__(self, window: float, num_heads: int, head_size: int) -> None:
        super().__init__()
        self.window = window
        self.hidden = nn.Parameter(torch.empty(num_heads, head_size, head_size))
        self.place = nn.Parameter(torch.empty(num_heads, head_size, 1))
        for head in (*self.hidden, *self.place):
            nn.init.xavier_uniform_(head)

    def mask(self, q: Queries, k: Keys, view: View) -> Bool[Tensor, "B H Q K"]:
        return self._is_near(self._away(q, k, view))

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        return self._score(q, k, self._away(q, k, view))

    def compute_weights(self, q: Queries, k: Keys, view: View) -> Weights:
        away = self._away(q, k, view)
        return masked_softmax(self._score(q, k, away), q, k, replace(view, pairs=self._is_near(away)))

    def _score(self, q: Queries, k: Keys, away: Float[Tensor, "B H Q K"]) -> Weights:
        with exact(q):  # unscaled scores are large, with a large rounding error
            products = q.to(away.dtype) @ k.to(away.dtype).mT
        return products - away.square() / (2 * (self.window / 2) ** 2)

    def _is_near(self, away: Float[Tensor, "B H Q K"]) -> Bool[Tensor, "B H Q K"]:
        return away.abs() <= self.window

    def _away(self, q: Queries, k: Keys, view: View) -> Float[Tensor, "B H Q K"]:
        """Return the distance from the position that each query predicts to each key, in `softmax_dtype`."""
        dtype = softmax_dtype(q)
        with exact(q):  # positions are large, with a large rounding error
            hidden = torch.tanh(multiply_heads(q.to(dtype), self.hidden.to(dtype)))
            share = torch.sigmoid(multiply_heads(hidden, self.place.to(dtype)))
        number = torch.arange(k.shape[2], device=k.device, dtype=dtype)
        if view.keys is None:
            return number - share * (k.shape[2] - 1)
        first = view.keys.to(torch.uint8).argmax(1)[:, None, None, None]
        last = (view.keys * number).amax(1)[:, None, None, None]
        return number - (first + share * (last - first))
