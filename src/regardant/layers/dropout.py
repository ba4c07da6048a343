"""Dropout whose masks are a pure function of a key and a place, so that they can be replayed.

The bits are a hash of a counter (two rounds of multiply and xor-shift with the `lowbias32` constants of Wellons),
keyed by (seed, rank, update, micro-batch) and the place in the model. Activation checkpointing, reversible layers and
a resumed run recompute them exactly; and they are vectorised over all threads, where torch's generator on a CPU draws
them one by one on one thread.

A place called several times under one key says which call it is, or drops the same elements each time.
"""

import dataclasses
from typing import Any

import torch
from torch import Tensor, nn

MIXERS = (0x7FEB352D, 0x846CA68B - (1 << 32))
RESOLUTION = 1 << 15
"""Rates are multiples of 1/32768: off by at most 1.6e-5."""


@dataclasses.dataclass
class DropoutKey:
    """What decides the masks of one forward pass. Shared by all places of a model, set by the trainer."""

    seed: int = 0
    rank: int = 0
    update: int = 0
    micro_batch: int = 0

    def at(self, place: int, call: int = 0) -> int:
        """A 63-bit hash of the key, the place and the call."""
        mixed = 0x9E3779B97F4A7C15
        for part in (self.seed, self.rank, self.update, self.micro_batch, place, call):
            mixed = ((mixed ^ part) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
            mixed ^= mixed >> 29
        return mixed >> 1  # a signed 64-bit number to torch


class Dropout(nn.Module):
    """Zeroes elements with chance `rate` while training and scales the others by 1 / (1 - rate)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.place = 0
        self.key: DropoutKey | None = None
        """Given by `share_key`; without one torch's generator is drawn from."""

    def forward(self, x: Tensor, call: int = 0) -> Tensor:
        """`call` counts from 0 where one key serves several."""
        if not self.training or self.rate == 0:
            return x
        if self.key is None or x.device.type != "cpu":  # accelerators draw bits in parallel
            return nn.functional.dropout(x, self.rate)
        dropped: Tensor = _Dropout.apply(x, self.rate, self.key.at(self.place, call))  # type: ignore[no-untyped-call]
        return dropped

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


def share_key(model: nn.Module) -> DropoutKey:
    """Number the places of a model and give them one key, which is returned for the trainer to move on."""
    key = DropoutKey()
    for place, module in enumerate(m for m in model.modules() if isinstance(m, Dropout)):
        module.place, module.key = place, key
    return key


def keep_mask(shape: torch.Size, rate: float, key: int, dtype: torch.dtype) -> Tensor:
    """1 where an element is kept and 0 where it is dropped, as numbers of `dtype`."""
    count = shape.numel()
    offset, salt = key & 0x7FFFFFFF, (key >> 32) & 0x7FFFFFFF
    bits = torch.arange(offset, offset + (count + 1) // 2).to(torch.int32)
    shifted = torch.empty_like(bits)
    for shift, multiplier in zip((16, 15), MIXERS, strict=True):
        torch.bitwise_right_shift(bits, shift, out=shifted)
        # The salt comes in between: two keys whose counters overlap still share no mask.
        bits.bitwise_xor_(shifted).mul_(multiplier).bitwise_xor_(salt)
    torch.bitwise_right_shift(bits, 16, out=shifted)
    draws = bits.bitwise_xor_(shifted).view(torch.int16)[:count].bitwise_and_(RESOLUTION - 1)  # two a hash
    # Negative where dropped; the sign, spread over all bits, blanks the bit pattern of 1.0.
    draws.sub_(min(round(rate * RESOLUTION), RESOLUTION - 1)).bitwise_right_shift_(15).bitwise_not_().bitwise_and_(
        0x3F80
    )
    return draws.view(torch.bfloat16).view(shape).to(dtype)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float, key: int) -> Tensor:
        mask = keep_mask(x.shape, rate, key, x.dtype)
        ctx.save_for_backward(mask)
        ctx.scale = 1 / (1 - rate)
        return (x * mask).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (mask,) = ctx.saved_tensors
        return (gradients[0] * mask).mul_(ctx.scale), None, None
