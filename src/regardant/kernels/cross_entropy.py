"""Normaliser of a softmax over a vocabulary, and the gradient of its cross-entropy written over the logits.

Label smoothing s and z-loss z are those of `layers.label_smoothed_cross_entropy`, which names their sources.

Shape legend: N rows, V vocabulary.
"""

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

BLOCK = 4096
"""Number of words read at a time."""


def normalise(
    logits: Float[Tensor, "N V"], right: Int[Tensor, " N"], label_smoothing: float, z_loss: float, *, gradient: bool
) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
    """Return log Z of each row and the logit of its right word, in float32.

    With `gradient` the logits become p (1 + 2 z log Z) - (1 - s) [right], the gradient without the share s / V that all
    words have. The logits must be contiguous.
    """
    rows, vocab_size = logits.shape
    normaliser, at_right = (logits.new_empty(rows, dtype=torch.float32) for _ in range(2))
    _normalise[(rows,)](
        logits, right, normaliser, at_right, vocab_size, 1 - label_smoothing, 2 * z_loss, gradient, BLOCK, num_warps=8
    )
    return normaliser, at_right


@triton.jit
def _normalise(
    logits, right, normaliser, at_right, vocab_size, share, twice_z, GRADIENT: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    logits += row * vocab_size
    word = tl.load(right + row)
    tl.store(at_right + row, tl.load(logits + word).to(tl.float32))  # before anything is written over
    largest, total = float("-inf"), 0.0
    for start in range(0, vocab_size, BLOCK):
        words = start + tl.arange(0, BLOCK)
        block = tl.load(logits + words, mask=words < vocab_size, other=float("-inf")).to(tl.float32)
        larger = tl.maximum(largest, tl.max(block, 0))
        total = total * tl.exp(largest - larger) + tl.sum(tl.exp(block - larger), 0)
        largest = larger
    log_z = largest + tl.log(total)
    tl.store(normaliser + row, log_z)
    if GRADIENT:
        for start in range(0, vocab_size, BLOCK):
            words = start + tl.arange(0, BLOCK)
            block = tl.load(logits + words, mask=words < vocab_size, other=float("-inf")).to(tl.float32)
            to_block = tl.exp(block - log_z) * (1 + twice_z * log_z) - tl.where(words == word, share, 0.0)
            tl.store(logits + words, to_block.to(logits.dtype.element_ty), mask=words < vocab_size)
