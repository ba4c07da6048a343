"""Cross-entropy with label smoothing: from logits, or fused with the projection to a vocabulary.

Label smoothing as in Szegedy et al. 2016, https://arxiv.org/abs/1512.00567: the target distribution is
(1 - s) on the right word plus s / V on every word. Z-loss as in Chowdhery et al. 2022 ("PaLM"),
https://arxiv.org/abs/2204.02311, section 5: z log^2 Z, which keeps the normaliser Z of the softmax near one, where
numbers of low precision are exact.

The fused form computes the gradient in the forward pass, chunk by chunk, so that at most one chunk of logits is in
memory: those of 4,096 tokens and 8,000 words would take 131 MB, several times over.

Shape legend: N tokens, N2 the rounded number of tokens, M d_model, V vocabulary or classes.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from regardant.attention.masks import softmax_dtype
from regardant.kernels import supports
from regardant.layers import products
from regardant.layers.rounded_rows import round_down, round_rows, round_up

SMALLEST_CHUNK = 256
"""Minimum number of tokens of a chunk: each chunk costs an addition to the gradient of the weights."""

CHUNK_BYTES = (1 << 25) - (1 << 16)
"""Maximum size of the logits of a larger chunk. Products of smaller chunks are slower. glibc gives a block of 32 MiB
back to the system after each use, whatever it is asked to keep: every use has page faults."""

ACCELERATOR_CHUNK_BYTES = 1 << 29
"""Maximum size of the logits on an accelerator, for large products and few kernel launches."""

UNDERFLOW = 1e-30
"""Probability below which digits are lost."""


def label_smoothed_cross_entropy(
    logits: Float[Tensor, "N V"], targets: Int[Tensor, " N"], label_smoothing: float, *, ignored: int = -100
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Return the sums of the smoothed and of the plain loss in nats; only the first has a gradient.

    Targets equal to `ignored` add nothing.
    """
    logits = logits.float()
    plain = F.cross_entropy(logits, targets, ignore_index=ignored, reduction="sum")
    if not label_smoothing:
        return plain, plain.detach()
    smoothed = F.cross_entropy(logits, targets, ignore_index=ignored, reduction="sum", label_smoothing=label_smoothing)
    return smoothed, plain.detach()


def projected_cross_entropy(
    vectors: Float[Tensor, "N M"],
    weight: Float[Tensor, "V M"],
    targets: Int[Tensor, " N"],
    label_smoothing: float,
    z_loss: float = 0.0,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Project vectors to a vocabulary; return the sums of the smoothed loss with z-loss and of the plain loss, in nats.

    Only the first has a gradient.
    """
    if not torch.is_grad_enabled():  # otherwise the function would compute gradients of parameters in an evaluation
        vectors, weight = vectors.detach(), weight.detach()
    with torch.autocast(vectors.device.type, enabled=False):  # it would copy every chunk once more
        total, plain = _ProjectedCrossEntropy.apply(vectors, weight, targets, label_smoothing, z_loss)  # type: ignore[no-untyped-call]
    return total, plain


def _normalise(
    logits: Float[Tensor, "N2 V"], right: Int[Tensor, " N"], label_smoothing: float, z_loss: float, *, gradient: bool
) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"], Float[Tensor, "N2 V"]]:
    """Return log Z of each row, the logit of its right word and, with `gradient`, the gradient without the share s / V
    that all words have.

    The rows of logits after the first N are padding, up to the rounded number. No loss depends on them, and their
    gradients are not used.
    """
    own = logits[: len(right)]
    if supports(logits):
        from regardant.kernels import cross_entropy

        normaliser, at_right = cross_entropy.normalise(own, right, label_smoothing, z_loss, gradient=gradient)
        return normaliser, at_right, logits
    places = right[:, None]
    exact = softmax_dtype(logits)
    # The product with the gradient rounds it to the type of the logits anyway: probabilities in it halve the traffic.
    narrow = gradient and logits.device.type == "cpu"
    probabilities = torch.softmax(logits, 1, dtype=logits.dtype if narrow else exact)
    normaliser = _log_normalisers(own, probabilities[: len(right)], places)
    at_right = own.gather(1, places).squeeze(1)
    if gradient:
        if z_loss:  # d log Z / d logits are the probabilities
            probabilities[: len(right)] *= 1 + 2 * z_loss * normaliser[:, None]
        each = torch.arange(len(right), device=logits.device)
        probabilities[each, right] -= 1 - label_smoothing
    return normaliser, at_right, probabilities


def _log_normalisers(logits: Tensor, probabilities: Tensor, right: Tensor) -> Tensor:
    """Return log Z of each row, computed from one word: logsumexp would compute every exponential again.

    The word is the right one, or the likeliest where the right one's probability underflows. On an accelerator it is
    always the likeliest: asking whether a probability underflows would wait for the device.
    """
    word, probability = right, probabilities.gather(1, right)
    if logits.device.type != "cpu" or probability.amin() < UNDERFLOW:
        probability, word = probabilities.max(1, keepdim=True)
    exact = softmax_dtype(logits)
    return (logits.gather(1, word).to(exact) - probability.to(exact).log()).squeeze(1)


def _chunk_size(vectors: Float[Tensor, "N M"], num_words: int) -> int:
    """Return the number of tokens of a chunk: all have about the same, and all but the last have a rounded number."""
    most = CHUNK_BYTES if vectors.device.type == "cpu" else ACCELERATOR_CHUNK_BYTES
    largest = max(SMALLEST_CHUNK, round_down(most // (num_words * vectors.element_size())))
    num_chunks = max(1, -(-len(vectors) // largest))
    return max(1, min(largest, round_up(-(-len(vectors) // num_chunks))))


class _ProjectedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, weight: Tensor, targets: Tensor, label_smoothing: float, z_loss: float
    ) -> tuple[Tensor, Tensor]:
        needs_gradient = any(ctx.needs_input_grad[:2])
        cast, mean_weight = weight.to(vectors.dtype), weight.mean(0)
        to_vectors = torch.empty_like(vectors) if needs_gradient else None
        to_weight: Tensor | None = None
        exact = softmax_dtype(vectors)
        total, plain = (vectors.new_zeros((), dtype=exact) for _ in range(2))
        size = _chunk_size(vectors, len(weight))
        for start in range(0, len(vectors), size):
            rows = slice(start, start + size)
            chunk = vectors[rows]
            full = round_rows(chunk, chunk.dtype)
            logits = products.times(full, cast)
            normaliser, at_right, gradient = _normalise(
                logits, targets[rows], label_smoothing, z_loss, gradient=needs_gradient
            )
            loss = (normaliser - at_right).sum()
            plain += loss
            # The mean logit is the product with the mean of all word vectors.
            mean_loss = normaliser.sum() - (chunk.to(exact) @ mean_weight).sum() if label_smoothing else 0.0
            total += (1 - label_smoothing) * loss + label_smoothing * mean_loss
            if z_loss:
                total += z_loss * normaliser.square().sum()
            if to_vectors is None:
                continue
            gradient = gradient.to(vectors.dtype)
            to_vectors[rows] = products.times(gradient, cast.T)[: len(chunk)]
            share = products.gradient_of_weight(gradient, full)  # padding is zeros in `full`
            to_weight = share.to(weight.dtype) if to_weight is None else to_weight.add_(share)
        if to_vectors is not None:
            to_weight = torch.zeros_like(weight) if to_weight is None else to_weight.contiguous()
            if label_smoothing:  # the share s / V that all words have
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
