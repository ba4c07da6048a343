"""Products of matrices by oneDNN, where that is faster than PyTorch's own.

PyTorch multiplies float32 by MKL, which uses AVX-512 instructions on Intel's processors alone. On another processor
with AVX-512, oneDNN multiplies twice as many numbers in the same time; see docs/decisions/0026. oneDNN compiles
a product for its shape, so PyTorch computes small products. With weights in its own layout, in a search, oneDNN is also
faster for few rows on Intel's processors with AVX-512 and on AMD's without. In bfloat16 PyTorch multiplies by oneDNN
too, but adds the bias by itself.

Shape legend: N rows, I inputs, O outputs.
"""

import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from regardant.layers.activations import ACTIVATIONS, Activation

SMALLEST = 1 << 24
"""Number of multiplications from which oneDNN computes a product whose shape may be new: compiling takes 0.2 ms."""

SMALLEST_AGAIN = 1 << 17
"""Number of multiplications from which oneDNN computes a product with weights in its own layout, whose shapes recur: a
row of 256 numbers by a matrix of 256 by 512."""

FEW_ROWS = range(2, 25)
"""Numbers of rows for which oneDNN with large matrices in its own layout is faster than MKL where both use the same
instructions."""

SMALLEST_AVX2 = 1 << 18
"""Number of weights of such a matrix on an AMD processor without AVX-512: 1,024 by 256. With AVX-512 on Intel's it is
SMALLEST_AGAIN."""

FUSED: dict[Activation, tuple[str, str]] = {
    "relu": ("relu", ""),
    "gelu": ("gelu", "none"),
    "gelu_tanh": ("gelu", "tanh"),
    "silu": ("swish", ""),
    "sigmoid": ("sigmoid", ""),
}
"""Names that oneDNN has for the activations, and for their algorithms, which it computes as part of a product."""

PROCESSORS = Path("/proc/cpuinfo")
"""File in which Linux describes the processors."""


@cache
def has_fast_onednn() -> bool:
    """Return whether this processor has AVX-512 and MKL does not use it."""
    return has_onednn() and _is_of_amd()


@cache
def has_onednn() -> bool:
    """Return whether oneDNN multiplies by AVX-512 on this processor."""
    return torch.backends.cpu.get_cpu_capability() == "AVX512" and torch.backends.mkldnn.is_available()


@cache
def has_narrow_onednn() -> bool:
    """Return whether oneDNN multiplies in bfloat16 on this processor: it raises on others."""
    supported: bool = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return supported


def rows_by_blocks(weight: Float[Tensor, "O I"]) -> range:
    """Return the numbers of rows for which oneDNN is faster with this matrix in its own layout than MKL."""
    if has_fast_onednn():
        return range(-(-SMALLEST_AGAIN // max(1, weight.numel())), sys.maxsize)
    return FEW_ROWS if weight.numel() >= _fewest_weights() else range(0)


@cache
def _fewest_weights() -> int:
    """Return the number of weights from which oneDNN multiplies FEW_ROWS faster than MKL."""
    if has_onednn():
        return SMALLEST_AGAIN
    avx2 = torch.backends.cpu.get_cpu_capability() == "AVX2" and torch.backends.mkldnn.is_available()
    return SMALLEST_AVX2 if avx2 and _is_of_amd() else sys.maxsize


def prefers_input(weight: Float[Tensor, "O I"]) -> bool:
    """Return whether PyTorch's product of few rows is faster with this matrix stored by input than by output.

    Measured on an AMD processor without AVX-512: docs/decisions/0026.
    """
    if weight.device.type != "cpu":
        return True
    if weight.dtype == torch.bfloat16:
        return False
    return len(weight) >= weight.shape[1] or not _is_of_amd()


@cache
def _is_of_amd() -> bool:
    """Return whether Linux reports an AMD processor."""
    try:
        return "AuthenticAMD" in PROCESSORS.read_text(encoding="utf-8")
    except OSError:
        return False


def takes(x: Float[Tensor, "*B I"], weight: Float[Tensor, "O I"]) -> bool:
    """Return whether oneDNN computes this product. While operations are counted or recorded, PyTorch does."""
    return (
        x.numel() * len(weight) >= SMALLEST
        and x.dtype == weight.dtype == torch.float32
        and x.device.type == "cpu"
        and has_fast_onednn()
        and not _watched()
    )


def _watched() -> bool:
    """Return whether operations are counted or recorded, which must be PyTorch's own."""
    return torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0


def linear(
    x: Float[Tensor, "*B I"], weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None = None
) -> Float[Tensor, "*B O"]:
    """Return x W^T + b with its gradients, by oneDNN where that is faster."""
    if takes(x, weight) or (bias is not None and _adds_narrow_bias(x, weight)):
        product: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        return product
    return F.linear(x, weight, bias)


def _adds_narrow_bias(x: Tensor, weight: Tensor) -> bool:
    """Return whether oneDNN multiplies in bfloat16 and adds the bias in the same pass. PyTorch copies the bias to every
    row beforehand, which takes up to as long as the product."""
    return (
        x.dtype == weight.dtype == torch.bfloat16
        and x.device.type == "cpu"
        and x.numel() > 0
        and has_narrow_onednn()
        and not _watched()
    )


def times(x: Float[Tensor, "N I"], weight: Float[Tensor, "O I"]) -> Float[Tensor, "N O"]:
    """Return x W^T without a gradient, by oneDNN where that is faster. The matrix may be a transposed view."""
    return multiply(x, weight, None) if takes(x, weight) else x @ weight.T


def gradient_of_weight(gradient: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> Float[Tensor, "O I"]:
    """Return the gradient of W in x W^T from the gradient of the product. The result may be a transposed view."""
    if not takes(x.T, gradient.T):
        return gradient.T @ x
    if gradient.shape[1] <= x.shape[1]:
        return multiply(gradient.T, x.T, None)
    # oneDNN divides the rows of the result: fewer, longer ones are up to twice as fast.
    return multiply(x.T, gradient.T, None).T


def multiply(x: Tensor, weight: Tensor, bias: Tensor | None, activation: Activation | None = None) -> Tensor:
    """Return x W^T + b, or its activation, by oneDNN, in the type of both.

    W is a plain matrix or in oneDNN's layout (`lay_out`).
    """
    if activation is None:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    elif activation in FUSED:
        kind, algorithm = FUSED[activation]
        product = torch.ops.mkldnn._linear_pointwise(x, weight, bias, kind, [], algorithm)
    else:
        product = ACTIVATIONS[activation](multiply(x, weight, bias))
    return product


def lay_out(weight: Float[Tensor, "O I"]) -> Tensor:
    """Return a copy of a matrix in oneDNN's layout, for which a product compiles faster for a new number of rows."""
    blocks: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, None)
    return blocks


class _Linear(torch.autograd.Function):
    """F.linear by oneDNN, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return multiply(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        rows = gradients[0].reshape(-1, len(weight))
        to_x = times(rows, weight.T).view(x.shape) if needs_x else None
        to_weight = gradient_of_weight(rows, x.reshape(-1, x.shape[-1])).contiguous() if needs_weight else None
        return to_x, to_weight, rows.sum(0) if needs_bias else None
