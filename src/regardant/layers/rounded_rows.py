"""Products in mixed precision on a CPU, with few numbers of rows.

A product in bfloat16 is compiled for its shape, which takes longer than the product itself, and batches have different
numbers of rows. The number is therefore rounded up to one of a few values; see docs/decisions/0014.

Where all items have the same number of elements, as images of one size, batches have few shapes by themselves:
`linear.keep_rows` leaves their rows alone.

Shape legend: I inputs, O outputs, N rows, N2 the rounded number of rows.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable


def narrows(x: Tensor) -> bool:
    """Return whether products of x are in mixed precision on a CPU."""
    return x.device.type == "cpu" and torch.is_autocast_enabled("cpu") and x.numel() > 0


def apply_to_rows(
    x: Float[Tensor, "*B I"], function: Callable[[Tensor], Tensor], *, rounds: bool
) -> Float[Tensor, "*B O"]:
    """Return the outputs of a function of each row, which may be several layers. It gets all rows of x in the narrow
    type; if the number of rows `rounds`, they are followed by rows of zeros, and copied once for all layers."""
    dtype, num_rows = torch.get_autocast_dtype("cpu"), x.shape[:-1].numel()
    if not rounds or round_up(num_rows) == num_rows:
        return function(x.to(dtype))
    rows: Tensor = _Pad.apply(x, dtype)  # type: ignore[no-untyped-call]
    outputs: Tensor = _TakeRows.apply(function(rows), x.shape[:-1])  # type: ignore[no-untyped-call]
    return outputs


def round_up(rows: int) -> int:
    """Return the number rounded up to a multiple of 16; from 128 on, to one of 8 steps between powers of 2."""
    step = _step(rows)
    return -(-rows // step) * step


def round_down(rows: int) -> int:
    """Return the number rounded down to one that `round_up` returns, or 0."""
    step = _step(rows)
    return rows // step * step


def _step(rows: int) -> int:
    return max(16, (1 << rows.bit_length()) >> 4)


def round_rows(x: Float[Tensor, "N I"], dtype: torch.dtype) -> Float[Tensor, "N2 I"]:
    """Return the rows in `dtype`, followed by rows of zeros up to the rounded number (`round_up`)."""
    rows, total = len(x), round_up(len(x))
    if rows == total:
        return x.to(dtype).contiguous()
    padded = x.new_empty(total, x.shape[1], dtype=dtype)
    padded[:rows] = x
    padded[rows:] = 0
    return padded


class _Pad(torch.autograd.Function):
    """Rows in another type, followed by rows of zeros."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dtype: torch.dtype) -> Tensor:
        ctx.shape, ctx.dtype = x.shape, x.dtype
        return round_rows(x.reshape(-1, x.shape[-1]), dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return gradients[0][: ctx.shape[:-1].numel()].view(ctx.shape).to(ctx.dtype), None


class _TakeRows(torch.autograd.Function):
    """The first rows, in another shape. Their gradient is followed by rows of zeros, so that no layer before it gets
    anything from the rows that were added."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, shape: torch.Size) -> Tensor:
        return rows[: shape.numel()].view(*shape, rows.shape[1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradients[0]
        return round_rows(gradient.reshape(-1, gradient.shape[-1]), gradient.dtype), None
