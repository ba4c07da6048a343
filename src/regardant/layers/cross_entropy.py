"""Projection to the vocabulary and label-smoothed cross-entropy in one, in chunks.

The gradient is formed in the forward pass, chunk by chunk, so that never more than a chunk of logits is in memory:
a block of 4,096 tokens and 8,000 words would fill 131 MB, several times over.

Label smoothing as in Szegedy et al. 2016, https://arxiv.org/abs/1512.00567: the target distribution is
(1 - s) on the right word plus s / V on every word.

Shape legend: N tokens, M d_model, V vocabulary.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK = 512
"""Tokens a chunk: 512 x 8,000 float32 are 16 MB, which a processor's cache half holds."""


def projected_cross_entropy(
    vectors: Float[Tensor, "N M"],
    weight: Float[Tensor, "V M"],
    targets: Int[Tensor, " N"],
    label_smoothing: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """(sum of the smoothed loss, sum of the plain loss) over the N tokens, in nats; the first can be differentiated."""
    smoothed, plain = _ProjectedCrossEntropy.apply(vectors, weight, targets, label_smoothing)  # type: ignore[no-untyped-call]
    return smoothed, plain


class _ProjectedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, weight: Tensor, targets: Tensor, label_smoothing: float
    ) -> tuple[Tensor, Tensor]:
        needs_gradient = any(ctx.needs_input_grad[:2])
        cast = weight.to(vectors.dtype)
        to_vectors = torch.empty_like(vectors) if needs_gradient else None
        to_weight = torch.zeros_like(weight) if needs_gradient else None
        exact = torch.promote_types(vectors.dtype, torch.float32)
        smoothed, plain = (vectors.new_zeros((), dtype=exact) for _ in range(2))
        vocab_size = weight.shape[0]
        for start in range(0, len(vectors), CHUNK):
            rows = slice(start, start + CHUNK)
            logits = (vectors[rows] @ cast.T).to(exact)
            right = targets[rows, None]
            at_target = logits.gather(1, right)
            # One pass for the normaliser and one, in place, for the probabilities.
            normaliser = logits.logsumexp(1, keepdim=True)
            loss = (normaliser - at_target).sum()
            plain += loss
            mean_loss = (normaliser.squeeze(1) - logits.mean(1)).sum() if label_smoothing else 0.0
            smoothed += (1 - label_smoothing) * loss + label_smoothing * mean_loss
            if to_vectors is None or to_weight is None:
                continue
            gradient = logits.sub_(normaliser).exp_()
            if label_smoothing:
                gradient.sub_(label_smoothing / vocab_size)
            gradient.scatter_add_(1, right, gradient.new_full(right.shape, label_smoothing - 1))
            narrow = gradient.to(vectors.dtype)
            torch.mm(narrow, cast, out=to_vectors[rows])
            to_weight += narrow.T @ vectors[rows]
        ctx.save_for_backward(to_vectors, to_weight)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        to_vectors, to_weight = ctx.saved_tensors
        scale = gradients[0]
        return to_vectors * scale.to(to_vectors.dtype), to_weight * scale, None, None
