"""Attention whose weights are products of features, phi(q) . phi(k), normalised. The cost is linear in the length.

Without a causal mask the sums over keys are computed once for all queries. With a causal mask they are running sums:
over chunks in training, and a recurrence of constant size in decoding.
Katharopoulos et al. 2020, "Transformers are RNNs", https://arxiv.org/abs/2006.16236, eq. 4 to 12.

Shape legend: as in `attention.interface`; F features, L tokens of a chunk.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regardant.attention.chunks import ChunkFunction, in_chunks
from regardant.attention.interface import Attention, Keys, Mixed, Queries, Values, Weights, expand_heads
from regardant.attention.masks import View
from regardant.attention.softmax import exact, nonzero

CHUNK = 128
"""Tokens of a chunk under a causal mask: all pairs inside a chunk are computed; earlier keys enter as sums."""

PORTION = 1024
"""Tokens of a chunk without a causal mask: no pair is computed, so that only memory limits the size."""


class Sums(NamedTuple):
    """Sums over all keys so far, of constant size."""

    values: Float[Tensor, "N H F E"]
    """sum_j phi(k_j) v_j^T."""
    features: Float[Tensor, "N H F"]
    """sum_j phi(k_j)."""


class KernelisedAttention(Attention):
    """Base of kernelised attention. Write `query_features` and `key_features`.

    All queries share the sums over keys, so that a mask can depend on padding and order alone, not on the pair.
    """

    honours = frozenset({"causal", "keys"})
    why_not: ClassVar[dict[str, str]] = dict.fromkeys(("bias", "pairs"), "all queries share their sums over keys")

    def query_features(self, q: Queries) -> Float[Tensor, "B H Q F"]:
        """Return phi(q) >= 0 in `softmax_dtype`. A factor for each query is allowed: it cancels."""
        raise NotImplementedError

    def key_features(self, k: Keys) -> Float[Tensor, "B H K F"]:
        """Return phi(k) >= 0 in `softmax_dtype`."""
        raise NotImplementedError

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        """Compute log(phi(q) . phi(k)), whose softmax is the weights."""
        return self._similarities(q, k).log()

    def compute_weights(self, q: Queries, k: Keys, view: View) -> Weights:
        similarities = self._similarities(q, k)
        if (mask := view.mask(q, k)) is not None:
            similarities = similarities * mask
        return similarities / nonzero(similarities.sum(-1, keepdim=True))

    def mix(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed:
        num_queries, real = q.shape[2], _real(view)
        with exact(q):
            if not view.causal:
                _, sums = self._in_chunks(self._sum_keys, [k, v, *real], self._empty_sums(k, v), PORTION)
                mixed, _ = self._in_chunks(self._attend_to_sums, [q], sums, PORTION)
                return mixed.to(v.dtype)
            later = num_queries - k.shape[2]
            if later > 0:  # the first queries are at positions before any key
                real = real or [torch.ones(1, 1, k.shape[2], 1, dtype=torch.bool, device=k.device)]
                k, v, *real = (F.pad(x, (0, 0, later, 0)) for x in (k, v, *real))
            elif later < 0:  # the first keys are at positions before any query
                q = F.pad(q, (0, 0, -later, 0))
            mixed, _ = self._in_chunks(self._attend_causally, [q, k, v, *real], self._empty_sums(k, v), CHUNK)
            return mixed[:, :, -num_queries:].to(v.dtype)

    def start(self, capacity: int) -> None:
        """Return None: the batch size and device are only known with the first keys."""

    def step(self, q: Queries, k: Keys, v: Values, state: Sums | None, view: View) -> tuple[Mixed, Sums]:
        self.check_step(view)
        k, v = expand_heads(k, q.shape[1]), expand_heads(v, q.shape[1])
        with exact(q):
            before = self._empty_sums(k, v) if state is None else state
            mixed, state = self._in_chunks(self._attend_causally, [q, k, v], before, CHUNK)
            return mixed.to(v.dtype), state

    def reorder(self, state: Sums | None, rows: Int[Tensor, " N2"]) -> Sums | None:
        return None if state is None else Sums(*(part.index_select(0, rows) for part in state))

    def _similarities(self, q: Queries, k: Keys) -> Weights:
        with exact(q):
            return self.query_features(q) @ self.key_features(k).mT

    def _in_chunks(self, run: ChunkFunction, sequences: Sequence[Tensor], sums: Sums, size: int) -> tuple[Tensor, Sums]:
        given, left = in_chunks(run, sequences, sums, list(self.parameters()), size=size)
        return given, Sums(*left)

    def _empty_sums(self, k: Tensor, v: Tensor) -> Sums:
        """Return the sums over no keys."""
        features = self.key_features(k[:, :, :0])
        return Sums(features.mT @ v[:, :, :0].to(features.dtype), features.sum(2))

    def _sum_keys(self, chunk: Sequence[Tensor], before: tuple[Tensor, ...]) -> tuple[Tensor, Sums]:
        """Add the keys of a chunk to the sums. The output is empty."""
        keys, values = self._features_and_values(*chunk)
        return values[..., :0], _add_keys(keys, values, Sums(*before))

    def _attend_to_sums(self, chunk: Sequence[Tensor], before: tuple[Tensor, ...]) -> tuple[Tensor, Sums]:
        """Return the weighted values of the queries of a chunk, from the sums."""
        (q,), sums = chunk, Sums(*before)
        queries = self.query_features(q)
        return queries @ sums.values / nonzero(queries @ sums.features[..., None]), sums

    def _attend_causally(self, chunk: Sequence[Tensor], before: tuple[Tensor, ...]) -> tuple[Tensor, Sums]:
        """Attend to the keys of the chunk under a causal mask and to the sums before it; add the keys to the sums."""
        (q, *key_parts), sums = chunk, Sums(*before)
        queries, (keys, values) = self.query_features(q), self._features_and_values(*key_parts)
        similarities = (queries @ keys.mT).tril()
        total = similarities.sum(-1, keepdim=True) + queries @ sums.features[..., None]
        return (similarities @ values + queries @ sums.values) / nonzero(total), _add_keys(keys, values, sums)

    def _features_and_values(self, k: Tensor, v: Tensor, *real: Tensor) -> tuple[Tensor, Tensor]:
        """Return phi(k), which is 0 at padding, and the values in the same precision."""
        features = self.key_features(k)
        for mask in real:
            features = features * mask
        return features, v.to(features.dtype)


def _real(view: View) -> list[Tensor]:
    """Return the mask of real keys [B, 1, K, 1] in a list, which is empty if there is no padding."""
    return [] if view.keys is None else [view.keys[:, None, :, None]]


def _add_keys(keys: Tensor, values: Tensor, sums: Sums) -> Sums:
    return Sums(sums.values + keys.mT @ values, sums.features + keys.sum(2))
