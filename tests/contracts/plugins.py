"""Mechanisms and position schemes as a user would add them: in a module of one's own, the package untouched.

They were picked because they are awkward: one decodes with sums instead of appended keys, one scores by a small
network in place of a product, two act where the package's own position schemes do not.

Shape legend: as in `regardant.attention.base`; T positions, A size of the attention's hidden layer.
"""

import math
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regardant.attention import Attention, AttentionConfig
from regardant.attention.base import expand_heads, masked_softmax, softmax_dtype
from regardant.positions import Positions, PositionsConfig


class LinearConfig(AttentionConfig):
    """Linear attention."""

    kind: Literal["linear"] = "linear"

    def build(self, *, num_heads: int, head_size: int) -> "Linear":
        return Linear()


class Sums(NamedTuple):
    """All that linear attention remembers of the keys so far, however many they were."""

    values: Tensor
    """[N, H, D, E]: sum of phi(k) v^T."""
    features: Tensor
    """[N, H, D]: sum of phi(k)."""


class Linear(Attention):
    """phi(q) sum_j phi(k_j) v_j^T / phi(q) sum_j phi(k_j) with phi = elu + 1.

    Katharopoulos et al. 2020, "Transformers are RNNs", https://arxiv.org/abs/2006.16236, eq. 4 to 12.
    """

    honours = frozenset({"causal", "keys"})  # queries share their sums over keys: there is no pair to hide

    def weigh(self, q, k, view):
        matches = phi(q) @ phi(k).mT
        if (allowed := view.allowed(q, k)) is not None:
            matches = matches * allowed
        return matches / nonzero(matches.sum(-1, keepdim=True))

    def mix(self, q, k, v, view):
        if view.causal:
            mixed, _ = self._run(q, k, v, view)
            return mixed
        features = self._features(k, view)
        return divide(phi(q), (features.mT @ v.to(features.dtype))[:, :, None], features.sum(2)[:, :, None], v.dtype)

    def start(self, capacity):
        return None  # rows, sizes and device are not known before the first keys

    def step(self, q, k, v, state, view):
        self.check(view)
        return self._run(q, expand_heads(k, q.shape[1]), expand_heads(v, q.shape[1]), view, state)

    def reorder(self, state, rows):
        return None if state is None else Sums(*(part[rows] for part in state))

    def _run(self, q, k, v, view, state=None):
        features = self._features(k, view)
        values = torch.einsum("bhkd,bhke->bhkde", features, v.to(features.dtype)).cumsum(2)
        features = features.cumsum(2)
        if state is not None:
            values, features = values + state.values[:, :, None], features + state.features[:, :, None]
        newest = slice(-q.shape[2], None)
        mixed = divide(phi(q), values[:, :, newest], features[:, :, newest], v.dtype)
        return mixed, Sums(values[:, :, -1], features[:, :, -1])

    def _features(self, k, view):
        return phi(k) if view.keys is None else phi(k) * view.keys[:, None, :, None]


def phi(x: Tensor) -> Tensor:
    return F.elu(x.to(softmax_dtype(x))) + 1


def divide(q: Tensor, values: Tensor, features: Tensor, dtype: torch.dtype) -> Tensor:
    mixed = torch.einsum("bhqd,bhqde->bhqe", q, values.expand(*q.shape, -1))
    return (mixed / nonzero((q * features).sum(-1, keepdim=True))).to(dtype)


def nonzero(total: Tensor) -> Tensor:
    return total.masked_fill(total == 0, 1)


class AdditiveConfig(AttentionConfig):
    """Additive attention."""

    kind: Literal["additive"] = "additive"

    def build(self, *, num_heads: int, head_size: int) -> "Additive":
        return Additive(head_size)


class Additive(Attention):
    """softmax(w . tanh(q + k)), for queries and keys that their layer has projected to one size.

    Bahdanau et al. 2015, https://arxiv.org/abs/1409.0473, appendix A.1.2. It writes `weights` and nothing more.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.score = nn.Parameter(torch.linspace(-1, 1, size))

    def weigh(self, q, k, view):
        hidden = torch.tanh(q[:, :, :, None] + k[:, :, None])  # [B, H, Q, K, A]
        return masked_softmax(hidden.to(softmax_dtype(q)) @ self.score.to(softmax_dtype(q)), q, k, view)


class RelativeBucketsConfig(PositionsConfig):
    """T5's relative positions."""

    kind: Literal["relative_buckets"] = "relative_buckets"

    num_buckets: int = 8
    """For keys before the query; as many again for those after it."""

    max_distance: int = 16
    """From here on all distances share a bucket."""

    def build(self, *, d_model: int, num_heads: int, max_length: int) -> "RelativeBuckets":
        return RelativeBuckets(self, num_heads)


class RelativeBuckets(Positions):
    """A learned number for each head and bucket of distances: exact when near, logarithmic when far.

    Raffel et al. 2020, https://arxiv.org/abs/1910.10683, section 2.1.
    """

    acts_on = "scores"

    def __init__(self, config: RelativeBucketsConfig, num_heads: int) -> None:
        super().__init__()
        self.config = config
        self.table = nn.Parameter(torch.randn(num_heads, 2 * config.num_buckets))

    def bias(self, queries, keys):
        num_buckets, exact = self.config.num_buckets, self.config.num_buckets // 2
        relative = keys[None, :] - queries[:, None]
        distance = relative.abs()
        far = torch.log(distance.clamp_min(1) / exact) / math.log(self.config.max_distance / exact)
        far_bucket = (exact + far * (num_buckets - exact)).long().clamp_max(num_buckets - 1)
        bucket = torch.where(distance < exact, distance, far_bucket) + num_buckets * (relative > 0)
        return self.table[:, bucket]


class RotaryConfig(PositionsConfig):
    """Rotary positions."""

    kind: Literal["rotary"] = "rotary"

    def build(self, *, d_model: int, num_heads: int, max_length: int) -> "Rotary":
        return Rotary(d_model // num_heads)


class Rotary(Positions):
    """Pairs of a query's or key's numbers turned by an angle in proportion to where it stands.

    Su et al. 2021, https://arxiv.org/abs/2104.09864, eq. 34.
    """

    acts_on = "query_key"

    def __init__(self, head_size: int) -> None:
        super().__init__()
        self.register_buffer("frequencies", 10000.0 ** -(torch.arange(0, head_size, 2) / head_size), persistent=False)

    def turn(self, x, positions):
        angles = positions[:, None] * self.frequencies
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


PLUGINS = (LinearConfig, AdditiveConfig)
