"""dropout(max(0, x)) in one pass forward and one backward.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, eq. 2, with dropout inside.
What is kept and positive has a gradient, and that can be seen in the output: no mask is kept.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

BLOCK = 4096
"""Numbers of a program."""


def relu_and_dropout(x: Float[Tensor, "*S"], rate: float, seed: int) -> Float[Tensor, "*S"]:
    """Return max(0, x) with numbers zeroed by `rate` and the others divided by 1 - rate."""
    dropped: Tensor = _ReluAndDropout.apply(x, rate, seed)  # type: ignore[no-untyped-call]
    return dropped


class _ReluAndDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float, seed: int) -> Tensor:
        x = x.contiguous()
        dropped = torch.empty_like(x)
        if count := x.numel():
            _forward[(triton.cdiv(count, BLOCK),)](x, dropped, seed, rate, count, rate > 0, BLOCK, num_warps=8)
        ctx.save_for_backward(dropped)
        ctx.rate = rate
        return dropped

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (dropped,) = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        to_x = torch.empty_like(gradient)
        if count := gradient.numel():
            _backward[(triton.cdiv(count, BLOCK),)](gradient, dropped, to_x, ctx.rate, count, BLOCK, num_warps=8)
        return to_x, None, None


@triton.jit(do_not_specialize=["seed"])
def _forward(x, dropped, seed, rate, count, DROPS: tl.constexpr, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    block = tl.maximum(tl.load(x + places, mask=inside, other=0.0).to(tl.float32), 0.0)
    if DROPS:
        block = tl.where(tl.rand(seed, places) >= rate, block / (1 - rate), 0.0)
    tl.store(dropped + places, block.to(dropped.dtype.element_ty), mask=inside)


@triton.jit
def _backward(gradient, dropped, to_x, rate, count, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    block = tl.load(gradient + places, mask=inside, other=0.0).to(tl.float32) / (1 - rate)
    kept = tl.load(dropped + places, mask=inside, other=0.0) > 0
    tl.store(to_x + places, tl.where(kept, block, 0.0).to(to_x.dtype.element_ty), mask=inside)
