"""Linear layers, and their weights laid out anew for all the steps of a search.

A step of decoding multiplies a few rows by the same matrices again and again. A matrix whose numbers lie by input is
read faster by such a product than one whose numbers lie by output, as in training: most of all the vocabulary's. In
bfloat16 half as many bytes are read, and what is multiplied and said is rounded to 8 bits; see
docs/decisions/0013.

Shape legend: I inputs, O outputs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class Linear(nn.Linear):
    """torch's, which in a search multiplies by weights laid out for it."""

    def forward(self, x: Float[Tensor, "*B I"]) -> Float[Tensor, "*B O"]:
        return linear(x, self.weight, self.bias)


def linear(
    x: Float[Tensor, "*B I"], weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None = None
) -> Float[Tensor, "*B O"]:
    """x W^T + b, by whatever layout of W is in use."""
    layouts = _in_use.get()
    return F.linear(x, weight, bias) if layouts is None else layouts.multiply(x, weight, bias)


class Layouts:
    """Copies of a model's weights, each made when it is first multiplied by.

    They are of the weights as these are then: to be forgotten after a search.
    """

    def __init__(self, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype
        """Of the products, if not the weights' own; what they are given and give stays as it is."""
        self._made: dict[Tensor, Tensor] = {}

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Products of this thread are with these weights."""
        token = _in_use.set(self)
        try:
            yield
        finally:
            _in_use.reset(token)

    def multiply(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """See `linear`."""
        by_input = self._made.get(weight)
        if by_input is None:  # by two threads at once it may be made twice, and nothing comes of it
            by_input = self._made[weight] = weight.to(self.dtype or weight.dtype).t().contiguous()
        rows = x.reshape(-1, x.shape[-1]).to(by_input.dtype)
        product = rows @ by_input if bias is None else torch.addmm(bias.to(by_input.dtype), rows, by_input)
        return product.to(x.dtype).view(*x.shape[:-1], len(weight))


_in_use: ContextVar[Layouts | None] = ContextVar("layouts", default=None)
