"""Linear layers: with few shapes in training (`layers.rounded_rows`), in another memory layout while decoding.

A decoding step multiplies few rows by the same matrices again and again. A product of few rows is mostly faster with a
matrix stored by input than by output, as in training; the gain is largest for the output projection. In bfloat16, and
in float32 where oneDNN is faster (`layers.products`), oneDNN lays out the matrix. In bfloat16 half as many bytes are
read, and inputs and outputs are rounded to 8 bits; see docs/decisions/0013.

Shape legend: I inputs, O outputs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regardant.layers import products
from regardant.layers.activations import ACTIVATIONS, Activation
from regardant.layers.rounded_rows import apply_to_rows, narrows

WEIGHTS_PER_LAUNCH = 32
"""Number of weights converted by one kernel launch. Their gradients are ready, and sent between replicas, together."""


class Linear(nn.Linear):
    """Linear layer of PyTorch, with rows rounded up in mixed precision on a CPU, and with layouts for decoding."""

    def __init__(self, num_inputs: int, num_outputs: int, bias: bool = True, *, stays_narrow: bool = False) -> None:
        super().__init__(num_inputs, num_outputs, bias)
        self.stays_narrow = stays_narrow
        """True keeps the output in the narrow type of a layout, for another product to read."""
        self.rounds_rows = True
        """False multiplies as many rows as there are. `keep_rows` sets it."""

    def forward(self, x: Float[Tensor, "*B I"], activation: Activation | None = None) -> Float[Tensor, "*B O"]:
        stays_narrow, rounds_rows = self.stays_narrow, self.rounds_rows
        return linear(x, self.weight, self.bias, activation, stays_narrow=stays_narrow, rounds_rows=rounds_rows)


def linear(
    x: Float[Tensor, "*B I"],
    weight: Float[Tensor, "O I"],
    bias: Float[Tensor, " O"] | None = None,
    activation: Activation | None = None,
    *,
    stays_narrow: bool = False,
    rounds_rows: bool = True,
) -> Float[Tensor, "*B O"]:
    """Return x W^T + b, or its activation, by the layout of W that is in use.

    stays_narrow: the output keeps the type of the layout, where one is in use.
    rounds_rows: rows are rounded up in mixed precision on a CPU.
    """
    layouts = _in_use.get()
    if layouts is not None:
        output = layouts.multiply(x, weight, bias, activation)
        # Runs some 20 times a step: a comparison of types is faster than a `to` that changes nothing.
        return output if stays_narrow or output.dtype == weight.dtype else output.to(weight.dtype)
    if (copies := _narrow.get()) is not None:
        weight, bias = copies.get(weight, weight), None if bias is None else copies.get(bias, bias)
    if narrows(x):
        product = apply_to_rows(x, lambda rows: _narrow_product(rows, weight, bias), rounds=rounds_rows)
    else:
        product = products.linear(x, weight, bias)
    return product if activation is None else ACTIVATIONS[activation](product)


def _narrow_product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return products.linear(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype))


Product = Callable[[Tensor, Activation | None], Tensor]
"""Function of [*B, I] and an activation. Returns [*B, O], in the precision of its weights."""


class _LaidOut(NamedTuple):
    """Product with the parameters that it was made from. While they are kept, no other tensor has their `id`."""

    version: tuple[int, ...]
    product: Product
    weight: Tensor
    bias: Tensor | None


class Layouts:
    """Copies of a model's weights in another layout, each made at its first product.

    A copy is made again when torch counts another version of the weight. Changes by `.data` and by fused optimizers are
    not counted: create new layouts after further training.
    """

    def __init__(self, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype
        """Type of the products. None: the type of the weights."""
        self._made: dict[tuple[int, int], _LaidOut] = {}
        """Products by the `id` of weight and bias: torch would hash tensors in Python, some 30 times a step."""

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Use these copies in all products of this thread while the context is open."""
        token = _in_use.set(self)
        try:
            yield
        finally:
            _in_use.reset(token)

    def multiply(self, x: Tensor, weight: Tensor, bias: Tensor | None, activation: Activation | None = None) -> Tensor:
        """Return the product as `linear` does, in the type of the products."""
        version = weight.data_ptr(), weight._version, 0 if bias is None else bias._version
        made = self._made.get((id(weight), id(bias)))
        if made is None or made.version != version:  # two threads may both make it, which is harmless
            made = _LaidOut(version, _lay_out(weight, bias, self.dtype or weight.dtype), weight, bias)
            self._made[id(weight), id(bias)] = made
        return made.product(x, activation)


def _lay_out(weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Product:
    if weight.device.type == "cpu":
        if dtype == torch.bfloat16 and products.has_narrow_onednn():
            return _pack(weight, bias)  # raises on a CPU without AVX-512, whose own products in bfloat16 are slow
        if dtype == torch.float32 and (rows := products.rows_by_blocks(weight)):
            return _in_float32(weight, bias, rows)
    return _by_torch(weight, bias, dtype)


def _by_torch(weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Product:
    """Return PyTorch's own product, with weights stored by input where that is faster."""
    stored, added = weight.to(dtype), None if bias is None else bias.to(dtype)
    if products.prefers_input(stored):
        stored = stored.t().contiguous().t()

    def product(x: Tensor, activation: Activation | None) -> Tensor:
        output = F.linear(x if x.dtype == dtype else x.to(dtype), stored, added)
        return output if activation is None else ACTIVATIONS[activation](output)

    return product


def _pack(weight: Tensor, bias: Tensor | None) -> Product:
    """Return the product in bfloat16 by oneDNN, with weights in its layout."""
    blocks, added = products.lay_out(weight.bfloat16()), None if bias is None else bias.bfloat16()
    return lambda x, activation: products.multiply(x.bfloat16(), blocks, added, activation)


def _in_float32(weight: Tensor, bias: Tensor | None, by_blocks: range) -> Product:
    """Return the product in float32: for the given numbers of rows by oneDNN, for others by PyTorch's own."""
    blocks = cache(lambda: products.lay_out(weight))  # each copy is made when a product first needs it
    own = cache(lambda: _by_torch(weight, bias, weight.dtype))
    num_inputs = weight.shape[1]

    def product(x: Tensor, activation: Activation | None) -> Tensor:
        if x.numel() // num_inputs in by_blocks:
            return products.multiply(x, blocks(), bias, activation)
        return own()(x, activation)

    return product


class _Narrow(torch.autograd.Function):
    """Copies of weights in another type, whose gradients come back in the type of the weights."""

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.dtypes = [weight.dtype for weight in weights]
        ctx.set_materialize_grads(False)
        copies = [torch.empty_like(weight, dtype=dtype) for weight in weights]
        torch._foreach_copy_(copies, weights)
        return tuple(copies)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        given = [gradient for gradient in gradients if gradient is not None]
        kinds = [dtype for dtype, gradient in zip(ctx.dtypes, gradients, strict=True) if gradient is not None]
        wide = [torch.empty_like(gradient, dtype=dtype) for gradient, dtype in zip(given, kinds, strict=True)]
        if wide:
            torch._foreach_copy_(wide, given)
        widened = iter(wide)
        return None, *(None if gradient is None else next(widened) for gradient in gradients)


@contextmanager
def narrow_weights(weights: Sequence[Tensor], dtype: torch.dtype) -> Iterator[None]:
    """Let the linear layers of this thread multiply by copies of weights in `dtype` while the context is open.

    Weights and their gradients are converted `WEIGHTS_PER_LAUNCH` at a time: autocast launches a kernel for each, and
    kernel launches limit the speed of a step on an accelerator. Frozen weights are in groups of their own, since all
    copies of a group need a gradient if one does.
    """
    copies: dict[Tensor, Tensor] = {}
    for learned in (False, True):
        some = [weight for weight in weights if weight.requires_grad is learned]
        for first in range(0, len(some), WEIGHTS_PER_LAUNCH):
            group = some[first : first + WEIGHTS_PER_LAUNCH]
            copies |= zip(group, _Narrow.apply(dtype, *group), strict=True)  # type: ignore[no-untyped-call]
    token = _narrow.set(copies)
    try:
        yield
    finally:
        _narrow.reset(token)


def keep_rows(model: nn.Module) -> None:
    """Let the linear layers of a model multiply as many rows as there are, for batches of few shapes."""
    for module in model.modules():
        if isinstance(module, Linear):
            module.rounds_rows = False


def multiplied(model: nn.Module) -> list[Tensor]:
    """Return the parameters of the linear layers of a model, each once."""
    layers = [module for module in model.modules() if isinstance(module, Linear)]
    found = dict.fromkeys(one for layer in layers for one in layer._parameters.values() if one is not None)
    return list(found)


_narrow: ContextVar[dict[Tensor, Tensor] | None] = ContextVar("narrow", default=None)
"""Copies of weights by the weight that they replace. A context variable for the same reasons as `_in_use`."""

_in_use: ContextVar[Layouts | None] = ContextVar("layouts", default=None)
"""Layouts of the search in this thread. An attribute of layers would be shared with searches in other threads, which
may use the same model in another precision; an argument would pass through every module."""
