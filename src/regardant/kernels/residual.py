"""x + dropout(written) and its LayerNorm, in one pass forward and one backward.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 5.4; Ba et al. 2016, https://arxiv.org/abs/1607.06450.
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
    dtype: torch.dtype,
) -> tuple[Float[Tensor, "*B M"], Float[Tensor, "*B M"]]:
    """Return x + dropout(written) in the type of x, and its LayerNorm in `dtype`. `rate` 0 drops nothing."""
    added, normed = _AddAndNorm.apply(x, written, weight, bias, eps, (rate, seed), dtype)  # type: ignore[no-untyped-call]
    return added, normed


class _AddAndNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        written: Tensor,
        weight: Tensor,
        bias: Tensor,
        eps: float,
        drops: tuple[float, int],
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        rate, seed = drops
        x, written = x.contiguous(), written.contiguous()
        width = x.shape[-1]
        rows = x.numel() // width
        added, normed = torch.empty_like(x), torch.empty_like(x, dtype=dtype)
        mean, inverse = (x.new_empty(rows, dtype=torch.float32) for _ in range(2))
        ctx.save_for_backward(added, weight, mean, inverse)
        ctx.rate, ctx.seed, ctx.written = rate, seed, written.dtype
        ctx.set_materialize_grads(False)  # post-norm, nothing but the norm reads the sum
        if rows:
            _forward[(rows,)](
                x, written, weight, bias, added, normed, mean, inverse, seed, eps, rate, width, **_sizes(width, rate)
            )
        return added, normed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, to_added: Tensor | None, to_normed: Tensor | None) -> tuple[Tensor | None, ...]:
        added, weight, mean, inverse = ctx.saved_tensors
        to_normed = torch.zeros_like(added) if to_normed is None else to_normed.contiguous()
        to_added = None if to_added is None else to_added.contiguous()
        rows, width = len(mean), added.shape[-1]
        programs = min(PROGRAMS, rows)
        to_x, to_written = torch.empty_like(added), torch.empty_like(added, dtype=ctx.written)
        to_weight, to_bias = (weight.new_empty(programs, width, dtype=torch.float32) for _ in range(2))
        if rows:
            _backward[(programs,)](
                to_added, to_normed, added, weight, mean, inverse, to_x, to_written, to_weight, to_bias,
                ctx.seed, ctx.rate, rows, width, programs, ADDS=to_added is not None, **_sizes(width, ctx.rate),
            )  # fmt: skip
        sums = (one.sum(0).to(weight.dtype) for one in (to_weight, to_bias))
        return to_x, to_written, *sums, None, None, None


def _sizes(width: int, rate: float) -> dict[str, Any]:
    block = int(triton.next_power_of_2(width))
    return {"DROPS": rate > 0, "BLOCK": block, "num_warps": min(max(block // 256, 1), 8)}


@triton.jit(do_not_specialize=["seed"])
def _forward(
    x, written, weight, bias, added, normed, mean, inverse, seed, eps, rate, width,
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
    to_added, to_normed, added, weight, mean, inverse, to_x, to_written, to_weight, to_bias,
    seed, rate, rows, width, programs, ADDS: tl.constexpr, DROPS: tl.constexpr, BLOCK: tl.constexpr,
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
        to_row = tl.load(to_normed + places, mask=inside, other=0.0).to(tl.float32)
        sum_weight += to_row * shape
        sum_bias += to_row
        weighted = to_row * of_weight
        total = (weighted - tl.sum(weighted, 0) / width - shape * (tl.sum(weighted * shape, 0) / width)) * scale
        if ADDS:
            total += tl.load(to_added + places, mask=inside, other=0.0).to(tl.float32)
        tl.store(to_x + places, total.to(to_x.dtype.element_ty), mask=inside)
        if DROPS:
            total = tl.where(tl.rand(seed, places) >= rate, total / (1 - rate), 0.0)
        tl.store(to_written + places, total.to(to_written.dtype.element_ty), mask=inside)
    tl.store(to_weight + tl.program_id(0) * width + columns, sum_weight, mask=inside)
    tl.store(to_bias + tl.program_id(0) * width + columns, sum_bias, mask=inside)
