"""LayerNorm(x + dropout(written)), the write of a post-norm layer, in one pass forward and one backward.

Dropout bits are Philox's, a pure function of a seed and the place of an element, so the backward pass draws them again.

Shape legend: N tokens, M d_model.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

WIDEST = 8192
"""Largest M."""

PROGRAMS = 1024
"""Programs of a backward pass, each of which sums the gradients of weights over its share of the tokens."""


def add_and_norm(
    x: Float[Tensor, "*B M"],
    written: Float[Tensor, "*B M"],
    weight: Float[Tensor, " M"],
    bias: Float[Tensor, " M"],
    eps: float,
    rate: float,
    seed: int,
) -> Float[Tensor, "*B M"]:
    """Return LayerNorm(x + dropout(written)) in the type of x. `rate` 0 drops nothing. M is at most WIDEST."""
    normed: Tensor = _AddAndNorm.apply(x, written, weight, bias, eps, rate, seed)  # type: ignore[no-untyped-call]
    return normed


class _AddAndNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, written: Tensor, weight: Tensor, bias: Tensor, eps: float, rate: float, seed: int
    ) -> Tensor:
        x, written = x.contiguous(), written.contiguous()
        width = x.shape[-1]
        rows = x.numel() // width
        normed, added = torch.empty_like(x), torch.empty_like(x)
        mean, inverse = (x.new_empty(rows, dtype=torch.float32) for _ in range(2))
        ctx.save_for_backward(added, weight, mean, inverse)
        ctx.rate, ctx.seed, ctx.narrow = rate, seed, written.dtype
        if rows:
            _forward[(rows,)](
                x, written, weight, bias, normed, added, mean, inverse, seed, eps, rate, width, **_sizes(width, rate)
            )
        return normed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        added, weight, mean, inverse = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        rows, width = len(mean), added.shape[-1]
        programs = min(PROGRAMS, rows)
        to_x, to_written = torch.empty_like(added), torch.empty_like(added, dtype=ctx.narrow)
        to_weight, to_bias = (weight.new_empty(programs, width, dtype=torch.float32) for _ in range(2))
        if rows:
            _backward[(programs,)](
                gradient, added, weight, mean, inverse, to_x, to_written, to_weight, to_bias, ctx.seed, ctx.rate,
                rows, width, programs, **_sizes(width, ctx.rate),
            )  # fmt: skip
        return to_x, to_written, to_weight.sum(0).to(weight.dtype), to_bias.sum(0).to(weight.dtype), None, None, None


def _sizes(width: int, rate: float) -> dict[str, Any]:
    block = int(triton.next_power_of_2(width))
    return {"DROPS": rate > 0, "BLOCK": block, "num_warps": min(max(block // 256, 1), 8)}


@triton.jit(do_not_specialize=["seed"])
def _forward(
    x, written, weight, bias, normed, added, mean, inverse, seed, eps, rate, width,
    DROPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    places, inside = row * width + columns, columns < width
    new = tl.load(written + places, mask=inside, other=0.0).to(tl.float32)
    if DROPS:
        new = tl.where(tl.rand(seed, places) >= rate, new / (1 - rate), 0.0)
    total = tl.load(x + places, mask=inside, other=0.0).to(tl.float32) + new
    tl.store(added + places, total.to(added.dtype.element_ty), mask=inside)
    middle = tl.sum(total, 0) / width
    centred = tl.where(inside, total - middle, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / width + eps)
    tl.store(mean + row, middle)
    tl.store(inverse + row, scale)
    of_weight = tl.load(weight + columns, mask=inside, other=0.0)
    of_bias = tl.load(bias + columns, mask=inside, other=0.0)
    tl.store(normed + places, (centred * scale * of_weight + of_bias).to(normed.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["seed"])
def _backward(
    gradient, added, weight, mean, inverse, to_x, to_written, to_weight, to_bias, seed, rate, rows, width, programs,
    DROPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    of_weight = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    wide = tl.cast(width, tl.int64)
    sum_weight, sum_bias = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), rows, programs):
        places = row * wide + columns
        scale = tl.load(inverse + row)
        shape = (tl.load(added + places, mask=inside, other=0.0).to(tl.float32) - tl.load(mean + row)) * scale
        shape = tl.where(inside, shape, 0.0)
        to_normed = tl.load(gradient + places, mask=inside, other=0.0).to(tl.float32)
        sum_weight += to_normed * shape
        sum_bias += to_normed
        weighted = to_normed * of_weight
        total = (weighted - tl.sum(weighted, 0) / width - shape * (tl.sum(weighted * shape, 0) / width)) * scale
        tl.store(to_x + places, total.to(to_x.dtype.element_ty), mask=inside)
        if DROPS:
            total = tl.where(tl.rand(seed, places) >= rate, total / (1 - rate), 0.0)
        tl.store(to_written + places, total.to(to_written.dtype.element_ty), mask=inside)
    tl.store(to_weight + tl.program_id(0) * width + columns, sum_weight, mask=inside)
    tl.store(to_bias + tl.program_id(0) * width + columns, sum_bias, mask=inside)
