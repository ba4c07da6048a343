"""Sum x + dropout(written) and its LayerNorm, in one pass forward and one backward.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 5.4; Ba et al. 2016, https://arxiv.org/abs/1607.06450.
The backward pass draws the dropout bits again.

Shape legend: N tokens, M d_model.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regardant.kernels.dropout import dropped_draws, keeps

PROGRAMS = 1024
"""Maximum number of programs of a backward pass, each of which sums the gradients of weights over its tokens."""


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
        ctx.drops, ctx.written = (seed, *dropped_draws(rate)), written.dtype
        ctx.set_materialize_grads(False)  # under post-norm, only the norm reads the sum
        if rows:
            _residual_forward[(rows,)](
                x, written, weight, bias, added, normed, mean, inverse, *ctx.drops,
                eps, width, **_sizes(width, ctx.drops[1] > 0),
            )  # fmt: skip
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
        sums = weight.new_empty(programs, 2, width, dtype=torch.float32)
        if rows:
            _residual_backward[(programs,)](
                to_added, to_normed, added, weight, mean, inverse, to_x, to_written, sums, *ctx.drops,
                rows, width, programs, ADDS=to_added is not None, **_sizes(width, ctx.drops[1] > 0),
            )  # fmt: skip
        to_weight, to_bias = sums.sum(0).to(weight.dtype)
        return to_x, to_written, to_weight, to_bias, None, None, None


def _sizes(width: int, drops: bool) -> dict[str, Any]:
    block = max(int(triton.next_power_of_2(width)), 8)
    return {"DROPS": drops, "BLOCK": block, "num_warps": min(max(block // 256, 1), 8)}


@triton.jit(do_not_specialize=["seed", "dropped"])
def _residual_forward(
    x, written, weight, bias, added, normed, mean, inverse, seed, dropped, factor, eps, width,
    DROPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    places, inside = row * width + columns, columns < width
    new = tl.load(written + places, mask=inside, other=0.0).to(tl.float32)
    if DROPS:
        new = tl.where(keeps(seed, tl.program_id(0), dropped, BLOCK), new * factor, 0.0)
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


@triton.jit(do_not_specialize=["seed", "dropped"])
def _residual_backward(
    to_added, to_normed, added, weight, mean, inverse, to_x, to_written, sums, seed, dropped, factor,
    rows, width, programs, ADDS: tl.constexpr, DROPS: tl.constexpr, BLOCK: tl.constexpr,
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
            total = tl.where(keeps(seed, row, dropped, BLOCK), total * factor, 0.0)
        tl.store(to_written + places, total.to(to_written.dtype.element_ty), mask=inside)
    sums += tl.program_id(0) * 2 * width
    tl.store(sums + columns, sum_weight, mask=inside)
    tl.store(sums + width + columns, sum_bias, mask=inside)
