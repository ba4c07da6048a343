"""ReLU and dropout, dropout(max(0, x)), in one pass forward and one backward.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, eq. 2, with dropout inside.
An element has a gradient if its output is positive, so that no mask is kept.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regardant.kernels.dropout import dropped_draws, keeps

BLOCK = 4096
"""Number of elements of a program."""


def relu_and_dropout(x: Float[Tensor, "*S"], rate: float, seed: int) -> Float[Tensor, "*S"]:
    """Return max(0, x) with elements zeroed with probability `rate` and the others divided by 1 - rate."""
    dropped: Tensor = _ReluAndDropout.apply(x, rate, seed)  # type: ignore[no-untyped-call]
    return dropped


class _ReluAndDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float, seed: int) -> Tensor:
        x = x.contiguous()
        result = torch.empty_like(x)
        dropped, ctx.factor = dropped_draws(rate)
        if count := x.numel():
            blocks = triton.cdiv(count, BLOCK)
            _relu_forward[(blocks,)](x, result, seed, dropped, ctx.factor, count, rate > 0, BLOCK, num_warps=8)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (result,) = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        to_x = torch.empty_like(gradient)
        if count := gradient.numel():
            blocks = triton.cdiv(count, BLOCK)
            _relu_backward[(blocks,)](gradient, result, to_x, ctx.factor, count, BLOCK, num_warps=8)
        return to_x, None, None


@triton.jit(do_not_specialize=["seed", "dropped"])
def _relu_forward(x, result, seed, dropped, factor, count, DROPS: tl.constexpr, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    block = tl.load(x + places, mask=inside, other=0.0).to(tl.float32)
    block = tl.where(block < 0.0, 0.0, block)  # tl.maximum turns NaN into 0 on an accelerator
    if DROPS:
        block = tl.where(keeps(seed, tl.program_id(0), dropped, BLOCK), block * factor, 0.0)
    tl.store(result + places, block.to(result.dtype.element_ty), mask=inside)


@triton.jit
def _relu_backward(gradient, result, to_x, factor, count, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    block = tl.load(gradient + places, mask=inside, other=0.0).to(tl.float32) * factor
    kept = tl.load(result + places, mask=inside, other=0.0) > 0
    tl.store(to_x + places, tl.where(kept, block, 0.0).to(to_x.dtype.element_ty), mask=inside)
