"""Linear attention: features phi(x) = elu(x) + 1, normalised.

Katharopoulos et al. 2020, "Transformers are RNNs", https://arxiv.org/abs/2006.16236, section 3.2.
"""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from regardant.attention.interface import AttentionConfig, Keys, Queries
from regardant.attention.kernelised import KernelisedAttention
from regardant.attention.masks import softmax_dtype


class LinearAttentionConfig(AttentionConfig):
    """(elu(q) + 1) . (elu(k) + 1), normalised; decodes with a state of constant size."""

    kind: Literal["linear"] = "linear"

    def build(self, *, num_heads: int, head_size: int) -> "LinearAttention":
        return LinearAttention()


class LinearAttention(KernelisedAttention):
    """Kernelised attention with positive weights that do not approximate a softmax."""

    def query_features(self, q: Queries) -> Tensor:
        return _features(q)

    def key_features(self, k: Keys) -> Tensor:
        return _features(k)


def _features(x: Tensor) -> Tensor:
    x = x.to(softmax_dtype(x))
    # Equal to elu(x) + 1 = exp(min(x, 0)) - 1 + max(x, 0) + 1, which cancels below 0: in float32 it is 0 from -17.4 on.
    return x.clamp_max(0).exp() + F.relu(x)
