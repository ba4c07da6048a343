"""Projection to the vocabulary and label-smoothed cross-entropy in one, in chunks.

The gradient is formed in the forward pass, chunk by chunk, so that never more than a chunk of logits is in memory:
a block of 4,096 tokens and 8,000 words would fill 131 MB, several times over.

Label smoothing as in Szegedy et al. 2016, https://arxiv.org/abs/1512.00567: the target distribution is
(1 - s) on the right word plus s / V on every word. Z-loss as in Chowdhery et al. 2022 ("PaLM"),
https://arxiv.org/abs/2204.02311, section 5: z log^2 Z, which keeps the normaliser Z of the softmax near one, where
narrow numbers are exact.

Shape legend: N tokens, M d_model, V vocabulary.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from regardant.layers.linear import round_rows

SMALLEST_CHUNK = 256
"""Tokens: the gradient of the weights is added to once a chunk."""

CHUNK_LOGITS = 1 << 22
"""Of a larger chunk: 16 MB in float32, which a processor's cache holds."""

SENT_LOGITS = 1 << 26
"""Of a chunk on an accelerator: a quarter of a gigabyte, so that there are few kernels to launch."""

WHOLE = 64
"""Larger chunks are of whole multiples of it, so that only the last one's rows are rounded up, see layers.linear."""

UNDERFLOW = 1e-30
"""Smaller probabilities have lost digits, or soon will."""


def projected_cross_entropy(
    vectors: Float[Tensor, "N M"],
    weight: Float[Tensor, "V M"],
    targets: Int[Tensor, " N"],
    label_smoothing: float,
    z_loss: float = 0.0,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """(sum of what is minimised, sum of the plain loss) over the N tokens, in nats; the first can be differentiated.

    What is minimised is the smoothed loss and `z_loss` times log^2 Z.
    """
    with torch.autocast(vectors.device.type, enabled=False):  # it would copy every chunk once more
        total, plain = _ProjectedCrossEntropy.apply(vectors, weight, targets, label_smoothing, z_loss)  # type: ignore[no-untyped-call]
    return total, plain


def _log_normalisers(logits: Tensor, probabilities: Tensor, right: Tensor) -> Tensor:
    """log Z of each row, from one word: logsumexp would take every exponential again.

    From the likeliest word where the right one's probability underflows. On an accelerator always: to ask whether it
    does would take longer.
    """
    word, probability = right, probabilities.gather(1, right)
    if logits.device.type != "cpu" or probability.amin() < UNDERFLOW:
        probability, word = probabilities.max(1, keepdim=True)
    return (logits.gather(1, word).to(probabilities.dtype) - probability.log()).squeeze(1)


class _ProjectedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, weight: Tensor, targets: Tensor, label_smoothing: float, z_loss: float
    ) -> tuple[Tensor, Tensor]:
        needs_gradient = any(ctx.needs_input_grad[:2])
        cast, mean_weight = weight.to(vectors.dtype), weight.mean(0)
        to_vectors = torch.empty_like(vectors) if needs_gradient else None
        to_weight = torch.zeros_like(weight) if needs_gradient else None
        exact = torch.promote_types(vectors.dtype, torch.float32)
        total, plain = (vectors.new_zeros((), dtype=exact) for _ in range(2))
        most = CHUNK_LOGITS if vectors.device.type == "cpu" else SENT_LOGITS
        size = max(SMALLEST_CHUNK, most // len(weight) // WHOLE * WHOLE)
        for start in range(0, len(vectors), size):
            rows = slice(start, start + size)
            chunk, right = vectors[rows], targets[rows, None]
            full = round_rows(chunk, chunk.dtype)
            logits = (full @ cast.T)[: len(chunk)]
            probabilities = torch.softmax(logits, 1, dtype=exact)
            normaliser = _log_normalisers(logits, probabilities, right)
            loss = (normaliser - logits.gather(1, right).squeeze(1)).sum()
            plain += loss
            # The mean logit is one product with the mean word.
            mean_loss = normaliser.sum() - (chunk.to(exact) @ mean_weight).sum() if label_smoothing else 0.0
            total += (1 - label_smoothing) * loss + label_smoothing * mean_loss
            if z_loss:
                total += z_loss * normaliser.square().sum()
            if to_vectors is None or to_weight is None:
                continue
            if z_loss:  # d log Z / d logits are the probabilities
                probabilities *= 1 + 2 * z_loss * normaliser[:, None]
            each = torch.arange(len(chunk), device=vectors.device)
            probabilities[each, right.squeeze(1)] -= 1 - label_smoothing
            gradient = round_rows(probabilities, vectors.dtype)
            to_vectors[rows] = (gradient @ cast)[: len(chunk)]
            to_weight += gradient.T @ full
        if label_smoothing and to_vectors is not None and to_weight is not None:  # the share of every word alike
            to_vectors -= (label_smoothing * mean_weight).to(vectors.dtype)
            to_weight -= label_smoothing / len(weight) * vectors.sum(0, dtype=exact)
        ctx.save_for_backward(to_vectors, to_weight)
        ctx.mark_non_differentiable(plain)
        return total, plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        to_vectors, to_weight = ctx.saved_tensors
        scale = gradients[0]
        return to_vectors * scale.to(to_vectors.dtype), to_weight * scale, None, None, None
