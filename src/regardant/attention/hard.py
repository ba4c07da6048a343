"""Hard attention: all weight on the best key.

Hard attention is the limit of a softmax as its temperature goes to zero. Keys that tie share the weight, as in the
limit. The choice has no gradient: queries and keys learn nothing from it.
"""

from typing import Literal

from jaxtyping import Float
from torch import Tensor

from regardant.attention.interface import AttentionConfig, Weights
from regardant.attention.scored import DotProductAttention


class HardConfig(AttentionConfig):
    """Attention that puts all weight on the key with the largest dot product."""

    kind: Literal["hard"] = "hard"

    def build(self, *, num_heads: int, head_size: int) -> "Hard":
        return Hard(head_size)


class Hard(DotProductAttention):
    """Attention to the best key alone: values[argmax(similarity(query, keys))]."""

    discontinuous = True

    def normalise(self, scores: Float[Tensor, "B H Q K"]) -> Weights:
        best = (scores == scores.amax(-1, keepdim=True)).to(scores.dtype)
        return best / best.sum(-1, keepdim=True)
