"""Attention whose weights are products of features: phi(q) . phi(k), normalised. Costs n, not n x n.

The sum over keys is taken once for all queries; where the future is hidden it runs along, in chunks while training
and as a recurrence of constant size while decoding.
Katharopoulos et al. 2020, "Transformers are RNNs", https://arxiv.org/abs/2006.16236, eq. 4 to 12.

Shape legend: as in `attention.interface`; F features, L tokens of a chunk.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regardant.attention.chunks import Run, in_chunks
from regardant.attention.interface import Attention, Keys, Mixed, Queries, Values, Weights, expand_heads
from regardant.attention.masks import View
from regardant.attention.softmax import exact, nonzero

CHUNK = 128
"""Tokens of a chunk where the future is hidden: inside it all pairs are computed, of earlier ones only sums."""

PORTION = 1024
"""Tokens of a chunk where it is not: no pair is computed, so that only the memory speaks against longer ones."""


class Sums(NamedTuple):
    """All that is remembered of keys, however many they were."""

    values: Float[Tensor, "N H F E"]
    """sum_j phi(k_j) v_j^T."""
    features: Float[Tensor, "N H F"]
    """sum_j phi(k_j)."""


class KernelisedAttention(Attention):
    """Write the features. Queries share their sums over keys, so no pair can be hidden but by order and padding."""

    honours = frozenset({"causal", "keys"})
    why_not: ClassVar[dict[str, str]] = dict.fromkeys(("bias", "pairs"), "all queries share their sums over keys")

    def query_features(self, q: Queries) -> Float[Tensor, "B H Q F"]:
        """phi(q) >= 0, in the precision of a softmax, up to a factor of each query's own, which cancels."""
        raise NotImplementedError

    def key_features(self, k: Keys) -> Float[Tensor, "B H K F"]:
        """phi(k) >= 0, in the precision of a softmax."""
        raise NotImplementedError

    def compute_scores(self, q: Queries, k: Keys, view: View) -> Weights:
        """log(phi(q) . phi(k)): a softmax of it gives the weights."""
        return self._match(q, k).log()

    def compute_weights(self, q: Queries, k: Keys, view: View) -> Weights:
        matches = self._match(q, k)
        if (mask := view.mask(q, k)) is not None:
            matches = matches * mask
        return matches / nonzero(matches.sum(-1, keepdim=True))

    def mix(self, q: Queries, k: Keys, v: Values, view: View) -> Mixed:
        num_queries, real = q.shape[2], _real(view)
        with exact(q):
            if not view.causal:
                _, sums = self._in_chunks(self._sum, [k, v, *real], self._nothing(k, v), PORTION)
                mixed, _ = self._in_chunks(self._ask, [q], sums, PORTION)
                return mixed.to(v.dtype)
            later = num_queries - k.shape[2]
            if later > 0:  # the first queries stand before any key
                real = real or [torch.ones(1, 1, k.shape[2], 1, dtype=torch.bool, device=k.device)]
                k, v, *real = (F.pad(x, (0, 0, later, 0)) for x in (k, v, *real))
            elif later < 0:  # the first keys are no query's own
                q = F.pad(q, (0, 0, -later, 0))
            mixed, _ = self._in_chunks(self._ask_along, [q, k, v, *real], self._nothing(k, v), CHUNK)
            return mixed[:, :, -num_queries:].to(v.dtype)

    def start(self, capacity: int) -> None:
        """Rows, sizes and device are not known before the first keys."""

    def step(self, q: Queries, k: Keys, v: Values, state: Sums | None, view: View) -> tuple[Mixed, Sums]:
        self.check_step(view)
        k, v = expand_heads(k, q.shape[1]), expand_heads(v, q.shape[1])
        with exact(q):
            before = self._nothing(k, v) if state is None else state
            mixed, state = self._in_chunks(self._ask_along, [q, k, v], before, CHUNK)
            return mixed.to(v.dtype), state

    def reorder(self, state: Sums | None, rows: Int[Tensor, " N2"]) -> Sums | None:
        return None if state is None else Sums(*(part[rows] for part in state))

    def _match(self, q: Queries, k: Keys) -> Weights:
        with exact(q):
            return self.query_features(q) @ self.key_features(k).mT

    def _in_chunks(self, run: Run, sequences: Sequence[Tensor], sums: Sums, size: int) -> tuple[Tensor, Sums]:
        given, left = in_chunks(run, sequences, sums, list(self.parameters()), size=size)
        return given, Sums(*left)

    def _nothing(self, k: Tensor, v: Tensor) -> Sums:
        """The sums over no keys."""
        features = self.key_features(k[:, :, :0])
        return Sums(features.mT @ v[:, :, :0].to(features.dtype), features.sum(2))

    def _sum(self, chunk: Sequence[Tensor], before: tuple[Tensor, ...]) -> tuple[Tensor, Sums]:
        """Add keys to the sums. Gives nothing: vectors of no numbers."""
        keys, values = self._read(*chunk)
        return values[..., :0], _added(keys, values, Sums(*before))

    def _ask(self, chunk: Sequence[Tensor], before: tuple[Tensor, ...]) -> tuple[Tensor, Sums]:
        """Ask the sums."""
        (q,), sums = chunk, Sums(*before)
        queries = self.query_features(q)
        return queries @ sums.values / nonzero(queries @ sums.features[..., None]), sums

    def _ask_along(self, chunk: Sequence[Tensor], before: tuple[Tensor, ...]) -> tuple[Tensor, Sums]:
        """Ask the keys of the chunk up to one's own, by their matrix, and the sums before them; then add the keys."""
        (q, *offered), sums = chunk, Sums(*before)
        queries, (keys, values) = self.query_features(q), self._read(*offered)
        matches = (queries @ keys.mT).tril()
        total = matches.sum(-1, keepdim=True) + queries @ sums.features[..., None]
        return (matches @ values + queries @ sums.values) / nonzero(total), _added(keys, values, sums)

    def _read(self, k: Tensor, v: Tensor, *real: Tensor) -> tuple[Tensor, Tensor]:
        """phi(k), 0 where there is padding, and the values in the same precision."""
        features = self.key_features(k)
        for mask in real:
            features = features * mask
        return features, v.to(features.dtype)


def _real(view: View) -> list[Tensor]:
    """[B, 1, K, 1], unless all keys are."""
    return [] if view.keys is None else [view.keys[:, None, :, None]]


def _added(keys: Tensor, values: Tensor, sums: Sums) -> Sums:
    return Sums(sums.values + keys.mT @ values, sums.features + keys.sum(2))
