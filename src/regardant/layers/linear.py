"""Linear layers: in training of few shapes, and with weights laid out anew for all the steps of a search.

On a CPU a product of bfloat16 numbers is compiled for its shape, which takes longer than the product itself, and each
batch has as many rows as it has tokens. So rows are rounded up to one of few counts: the copy that narrows the numbers
is made anyway; see docs/decisions/0014.

A step of decoding multiplies a few rows by the same matrices again and again. A matrix whose numbers lie by input is
read faster by such a product than one whose numbers lie by output, as in training: most of all the vocabulary's. In
bfloat16 half as many bytes are read, laid out by oneDNN, and what is multiplied and said is rounded to 8 bits; see
docs/decisions/0013.

Shape legend: I inputs, O outputs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class Linear(nn.Linear):
    """torch's, with rows rounded up in mixed precision on a CPU, and weights laid out for a search."""

    def __init__(self, num_inputs: int, num_outputs: int, bias: bool = True, *, stays_narrow: bool = False) -> None:
        super().__init__(num_inputs, num_outputs, bias)
        self.stays_narrow = stays_narrow
        """Whether what it says need not be widened again, since it goes into another product."""

    def forward(self, x: Float[Tensor, "*B I"]) -> Float[Tensor, "*B O"]:
        return linear(x, self.weight, self.bias, stays_narrow=self.stays_narrow)


def linear(
    x: Float[Tensor, "*B I"],
    weight: Float[Tensor, "O I"],
    bias: Float[Tensor, " O"] | None = None,
    *,
    stays_narrow: bool = False,
) -> Float[Tensor, "*B O"]:
    """x W^T + b, by whatever layout of W is in use."""
    layouts = _in_use.get()
    if layouts is not None:
        said = layouts.multiply(x, weight, bias)
        return said if stays_narrow else said.to(weight.dtype)
    if x.device.type == "cpu" and torch.is_autocast_enabled("cpu") and x.numel():
        product: Tensor = _RoundedLinear.apply(x, weight, bias, torch.get_autocast_dtype("cpu"))  # type: ignore[no-untyped-call]
        return product
    return F.linear(x, weight, bias)


def round_up(rows: int) -> int:
    """That many or up to an eighth more, in whole sixteens: one of eight counts between a power of two and the next."""
    step = max(16, (1 << rows.bit_length()) >> 4)
    return -(-rows // step) * step


def round_rows(x: Float[Tensor, "N I"], dtype: torch.dtype) -> Float[Tensor, "N2 I"]:
    """The rows in `dtype`, and zeros after them."""
    rows, total = len(x), round_up(len(x))
    if rows == total:
        return x.to(dtype).contiguous()
    padded = x.new_empty(total, x.shape[1], dtype=dtype)
    padded[:rows] = x
    padded[rows:] = 0
    return padded


class _RoundedLinear(torch.autograd.Function):
    """F.linear of mixed precision, forward and backward with `rounded` rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
        flat, narrow = x.reshape(-1, x.shape[-1]), weight.to(dtype)
        padded = round_rows(flat, dtype)
        product = padded @ narrow.T if bias is None else torch.addmm(bias.to(dtype), padded, narrow.T)
        ctx.save_for_backward(padded, narrow)
        ctx.dtypes = x.dtype, weight.dtype
        return product[: len(flat)].view(*x.shape[:-1], len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        padded, narrow = ctx.saved_tensors
        of_x, of_weight = ctx.dtypes
        needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
        gradient = gradients[0].reshape(-1, len(narrow))
        rows = round_rows(gradient, narrow.dtype)
        to_x = to_weight = to_bias = None
        if needs_x:
            to_x = (rows @ narrow)[: len(gradient)].view(*gradients[0].shape[:-1], narrow.shape[1]).to(of_x)
        if needs_weight:
            to_weight = (rows.T @ padded).to(of_weight)
        if needs_bias:
            to_bias = gradient.sum(0).to(of_weight)  # summed in float32, but not from a widened copy
        return to_x, to_weight, to_bias, None


Product = Callable[[Tensor], Tensor]
"""[*B, I] to [*B, O], in the precision of its weights."""


class Layouts:
    """Copies of a model's weights, each made when it is first multiplied by, and anew once torch counts another version
    of the weight. `.data` and fused optimizers change one uncounted: take new layouts after training on."""

    def __init__(self, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype
        """Of the products, if not the weights' own; what they are given stays as it is."""
        self._made: dict[tuple[Tensor, Tensor | None], tuple[tuple[int, ...], Product]] = {}

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Products of this thread are with these weights."""
        token = _in_use.set(self)
        try:
            yield
        finally:
            _in_use.reset(token)

    def multiply(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """See `linear`; in the precision of the products."""
        version = weight.data_ptr(), weight._version, 0 if bias is None else bias._version
        made = self._made.get((weight, bias))
        if made is None or made[0] != version:  # by two threads at once it may be made twice, and nothing comes of it
            made = self._made[weight, bias] = version, _lay_out(weight, bias, self.dtype or weight.dtype)
        _, product = made
        return product(x)


def _lay_out(weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Product:
    if dtype == torch.bfloat16 and weight.device.type == "cpu":
        return _pack(weight, bias)
    by_input, added = weight.to(dtype).t().contiguous(), None if bias is None else bias.to(dtype)
    if added is None:
        return lambda x: x.to(dtype) @ by_input
    return lambda x: torch.addmm(added, x.to(dtype).reshape(-1, x.shape[-1]), by_input).view(*x.shape[:-1], len(added))


def _pack(weight: Tensor, bias: Tensor | None) -> Product:
    """By oneDNN, in blocks of its own. Such a product is compiled for its rows in a tenth of the time of others."""
    blocks = torch.ops.mkldnn._reorder_linear_weight(weight.bfloat16(), None)
    added = None if bias is None else bias.bfloat16()

    def product(x: Tensor) -> Tensor:
        multiplied: Tensor = torch.ops.mkldnn._linear_pointwise(x.bfloat16(), blocks, added, "none", [], "")
        return multiplied

    return product


_in_use: ContextVar[Layouts | None] = ContextVar("layouts", default=None)
"""Layouts of the search that runs in this thread. Neither an attribute of the layers nor an argument: searches of other
precision may use the same model in other threads at the same time, and an argument would pass through every module."""
