"""Dropout whose masks are a pure function of a key and a place, so that they can be replayed.

The bits are a hash of a counter (two rounds of multiply and xor-shift with the `lowbias32` constants of Wellons),
keyed by (seed, rank, update, micro-batch) and the place in the model. Activation checkpointing, reversible layers and
a resumed run recompute them exactly; and they are vectorised over all threads, where torch's generator on a CPU draws
them one by one on one thread.

A place called several times under one key says which call it is, or drops the same elements each time.
"""

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

MIXERS = (0x7FEB352D, 0x846CA68B - (1 << 32))
RESOLUTION = 1 << 15
"""Rates are multiples of 1/32768 between 0 and 1: off by at most 1.6e-5, and by 3.1e-5 next to 0 and 1."""

CHUNK = 1 << 18
"""Hashes made at a time: a megabyte, which stays in a core's cache from one step of the hash to the next."""


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


Draw = Callable[[Tensor, float, DropoutKey, int, int], Tensor]
"""(x, rate, key, place, call) to x with dropped elements."""


class Dropout(nn.Module):
    """Zeroes elements with chance `rate` while training and scales the others by 1 / (1 - rate)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.place = 0
        self.key: DropoutKey | None = None
        """Given by `share_key`; without one torch's generator is drawn from."""
        self.draw: Draw = draw
        """The masking under a key. `regardant.planning.compilation` keeps it out of compiled code."""

    def forward(self, x: Tensor, call: int = 0) -> Tensor:
        """`call` counts from 0 where one key serves several."""
        if not self.training or self.rate == 0:
            return x
        if self.key is None or x.device.type != "cpu":  # accelerators draw bits in parallel
            return nn.functional.dropout(x, self.rate)
        return self.draw(x, self.rate, self.key, self.place, call)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


def draw(x: Tensor, rate: float, key: DropoutKey, place: int, call: int) -> Tensor:
    """Drop elements of `x` by the mask of the key, place and call."""
    dropped: Tensor = _Dropout.apply(x, rate, key.at(place, call))  # type: ignore[no-untyped-call]
    return dropped


def share_key(model: nn.Module) -> DropoutKey:
    """Number the places of a model and give them one key, which is returned for the trainer to move on."""
    key = DropoutKey()
    for place, module in enumerate(m for m in model.modules() if isinstance(m, Dropout)):
        module.place, module.key = place, key
    return key


def keep_mask(shape: torch.Size, rate: float, key: int) -> Tensor:
    """int16: all bits set where an element is kept, none where it is dropped."""
    count = shape.numel()
    draws = torch.empty(count + count % 2, dtype=torch.int16)  # two a hash
    kept = min(max(round((1 - rate) * RESOLUTION), 1), RESOLUTION - 1)  # which fits 16 bits
    for start in range(0, len(draws), 2 * CHUNK):
        chunk = draws[start : start + 2 * CHUNK]
        _hash_into(chunk.view(torch.int32), key, start // 2)
        # Negative where kept; the sign is spread over all bits.
        chunk.bitwise_and_(RESOLUTION - 1).sub_(kept).bitwise_right_shift_(15)
    return draws[:count].view(shape)


def _hash_into(bits: Tensor, key: int, first: int) -> None:
    """Fills int32 `bits` with the hashes of as many counters, from that of the key and `first` on."""
    offset, salt = (key + first) & 0xFFFFFFFF, (key >> 32) & 0x7FFFFFFF
    torch.add(_counters(CHUNK)[: len(bits)], offset - ((offset >> 31) << 32), out=bits)
    shifted = torch.bitwise_right_shift(bits, 16)
    # The salt comes in between: two keys whose counters overlap still share no mask.
    bits.bitwise_xor_(shifted).mul_(MIXERS[0]).bitwise_xor_(salt)
    torch.bitwise_right_shift(bits, 15, out=shifted)
    bits.bitwise_xor_(shifted).mul_(MIXERS[1])
    torch.bitwise_right_shift(bits, 16, out=shifted)
    bits.bitwise_xor_(shifted)


@cache
def _counters(count: int) -> Tensor:
    return torch.arange(count, dtype=torch.int32)


class _Dropout(torch.autograd.Function):
    """Blanks bits, which costs less than making numbers of a mask. In 32 bits these are the bits of 1 / (1 - rate), to
    multiply by; in 16 that is not exact enough, so those of the product itself."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float, key: int) -> Tensor:
        ctx.scale = 1 / (1 - rate)
        mask = keep_mask(x.shape, rate, key)
        if not _is_narrow(x):
            factor = torch.tensor(ctx.scale, dtype=x.dtype)
            bits = torch.int32 if x.dtype == torch.float32 else torch.int64
            mask = mask.to(bits).bitwise_and_(factor.view(bits)).view(x.dtype)
        ctx.save_for_backward(mask)
        return _kept(x, mask, ctx.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (mask,) = ctx.saved_tensors
        return _kept(gradients[0], mask, ctx.scale), None, None


def _kept(x: Tensor, mask: Tensor, scale: float) -> Tensor:
    if not _is_narrow(x):
        return x * mask
    scaled = x * scale
    scaled.view(torch.int16).bitwise_and_(mask)
    return scaled


def _is_narrow(x: Tensor) -> bool:
    return x.element_size() == 2
