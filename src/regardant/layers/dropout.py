"""Dropout with masks that are a pure function of a key and a place, so that they can be replayed.

The dropout bits are a hash of a counter (two rounds of multiply and xor-shift with the `lowbias32` constants of
Wellons), keyed by (seed, rank, update, micro-batch) and the place in the model. Activation checkpointing, reversible
layers and a resumed run recompute them exactly. Hashing uses all threads; torch's generator on a CPU uses one. On an
accelerator, where it draws in parallel, masks come from torch's generator; kernels that draw masks themselves are
seeded by the key.

The shifts are arithmetic, where those of `lowbias32` are logical, so that hash(c) = hash(~c). A mask is therefore
mirrored around the place where its counter changes its sign. A mask of n hashes, which serve two elements each, has
such a place with a probability of about 2n / 2^32.

A place that is called several times under one key must pass the number of the call, or its masks are all the same.
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
"""Number of steps of a rate: rates are rounded to multiples of 1/32768, an error of at most 1.6e-5 (3.1e-5 near 0 and
1)."""

CHUNK = 1 << 18
"""Number of hashes computed at a time: 1 MiB, which stays in a core's cache between the steps of the hash."""


@dataclasses.dataclass
class DropoutKey:
    """Key of the masks of one forward pass. All places of a model share it, and the trainer sets it."""

    seed: int = 0
    rank: int = 0
    update: int = 0
    micro_batch: int = 0

    def at(self, place: int, call: int = 0) -> int:
        """Return a 63-bit hash of the key, the place and the call."""
        mixed = 0x9E3779B97F4A7C15
        for part in (self.seed, self.rank, self.update, self.micro_batch, place, call):
            mixed = ((mixed ^ part) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
            mixed ^= mixed >> 29
        return mixed >> 1  # fits torch's signed 64-bit integers


Draw = Callable[[Tensor, float, DropoutKey, int, int], Tensor]
"""Function of (x, rate, key, place, call). Returns x with some elements zeroed."""


class Dropout(nn.Module):
    """Dropout. In training elements are zeroed with probability `rate`, the others scaled by 1 / (1 - rate)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.place = 0
        self.key: DropoutKey | None = None
        """Set by `share_key`. None, or on an accelerator: masks come from torch's generator."""
        self.draw: Draw = draw
        """Function that masks under a key. `regardant.planning.compilation` keeps it out of compiled code."""

    def forward(self, x: Tensor, call: int = 0) -> Tensor:
        """Return x with some elements zeroed. `call` numbers the calls under one key, from 0."""
        if not self.training or self.rate == 0:
            return x
        if self.key is None or x.device.type != "cpu":  # accelerators draw bits in parallel
            return nn.functional.dropout(x, self.rate)
        return self.draw(x, self.rate, self.key, self.place, call)

    def relu_and_drop(self, x: Tensor) -> Tensor:
        """Return `self(relu(x))`. Under a key on a CPU, training makes fewer passes over memory."""
        key = self.key
        if not self.training or self.rate == 0 or key is None or x.device.type != "cpu" or self.draw is not draw:
            return self(nn.functional.relu(x))
        dropped: Tensor = _ReluAndDropout.apply(x, self.rate, key.at(self.place))  # type: ignore[no-untyped-call]
        return dropped

    def seed(self) -> int:
        """Return a 63-bit seed for a kernel that draws masks itself: from the key, or from torch's generator."""
        if self.key is None:
            return int(torch.randint(2**63 - 1, ()))  # on the CPU: no device has to be waited for
        return self.key.at(self.place)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


def draw(x: Tensor, rate: float, key: DropoutKey, place: int, call: int) -> Tensor:
    """Return `x` with elements zeroed by the mask of the key, place and call."""
    dropped: Tensor = _Dropout.apply(x, rate, key.at(place, call))  # type: ignore[no-untyped-call]
    return dropped


def share_key(model: nn.Module) -> DropoutKey:
    """Give the dropout places of a model numbers and one key, and return the key for the trainer to advance."""
    key = DropoutKey()
    for place, module in enumerate(m for m in model.modules() if isinstance(m, Dropout)):
        module.place, module.key = place, key
    return key


def take_rates(model: nn.Module, like: nn.Module) -> None:
    """Give the dropout places of a model the rates of another with the same places."""
    ours, theirs = ([place for place in one.modules() if isinstance(place, Dropout)] for one in (model, like))
    for place, other in zip(ours, theirs, strict=True):
        place.rate = other.rate


def keep_mask(shape: torch.Size, rate: float, key: int) -> Tensor:
    """Return an int16 mask: all bits set where an element is kept, none where it is dropped."""
    count = shape.numel()
    draws = torch.empty(count + count % 2, dtype=torch.int16)  # two for each hash
    for start in range(0, len(draws), 2 * CHUNK):
        _draw_into(draws[start : start + 2 * CHUNK], rate, key, start)
    return draws[:count].view(shape)


def _draw_into(mask: Tensor, rate: float, key: int, start: int) -> None:
    """Fill an even number of int16 with the mask of the elements from `start` on."""
    kept = min(max(round((1 - rate) * RESOLUTION), 1), RESOLUTION - 1)  # which fits 16 bits
    _hash_into(mask.view(torch.int32), key, start // 2)
    # Negative where kept; the sign is spread over all bits.
    mask.bitwise_and_(_int16(RESOLUTION - 1)).sub_(_int16(kept)).bitwise_right_shift_(_int16(15))


def _hash_into(bits: Tensor, key: int, first: int) -> None:
    """Fill int32 `bits` with hashes of consecutive counters, starting at the key's counter plus `first`."""
    offset, salt = (key + first) & 0xFFFFFFFF, (key >> 32) & 0x7FFFFFFF
    torch.add(_counters(CHUNK)[: len(bits)], offset - ((offset >> 31) << 32), out=bits)
    shifted = torch.bitwise_right_shift(bits, _int32(16))
    # The salt enters between the rounds, so that two keys with overlapping counters share no mask.
    bits.bitwise_xor_(shifted).mul_(_int32(MIXERS[0])).bitwise_xor_(torch.tensor(salt, dtype=torch.int32))
    torch.bitwise_right_shift(bits, _int32(15), out=shifted)
    bits.bitwise_xor_(shifted).mul_(_int32(MIXERS[1]))
    torch.bitwise_right_shift(bits, _int32(16), out=shifted)
    bits.bitwise_xor_(shifted)


@cache
def _counters(count: int) -> Tensor:
    return torch.arange(count, dtype=torch.int32)


@cache
def _int32(number: int) -> Tensor:
    """Return a constant operand: torch would convert a Python number to the type of the bits at every operation."""
    return torch.tensor(number, dtype=torch.int32)


@cache
def _int16(number: int) -> Tensor:
    return torch.tensor(number, dtype=torch.int16)


class _Dropout(torch.autograd.Function):
    """Dropout by masking bits, which costs less than converting the mask to numbers.

    In 32 or 64 bits the masked bits are those of the factor 1 / (1 - rate). In 16 bits this factor is not exact enough:
    there the bits of the product are masked.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float, key: int) -> Tensor:
        ctx.scale = 1 / (1 - rate)
        mask = keep_mask(x.shape, rate, key)
        if not _is_narrow(x):
            factor = torch.tensor(ctx.scale, dtype=x.dtype)
            bits = _BITS[x.element_size()]
            mask = mask.to(bits).bitwise_and_(factor.view(bits)).view(x.dtype)
        ctx.save_for_backward(mask)
        return _kept(x, mask, ctx.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (mask,) = ctx.saved_tensors
        return _kept(gradients[0], mask, ctx.scale), None, None


class _ReluAndDropout(torch.autograd.Function):
    """ReLU and dropout. An element has a gradient if its output is positive, so that no mask is kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float, key: int) -> Tensor:
        ctx.scale = 1 / (1 - rate)
        result = torch.empty_like(x, memory_format=torch.contiguous_format)
        given, kept = x.reshape(-1), result.view(-1)
        bits = _BITS[x.element_size()]
        mask = torch.empty(2 * CHUNK, dtype=torch.int16)
        for start in range(0, len(kept), 2 * CHUNK):  # a chunk stays in the cache until it is complete
            chunk = kept[start : start + 2 * CHUNK]
            _draw_into(mask[: len(chunk) + len(chunk) % 2], rate, key, start)
            torch.clamp_min(given[start : start + 2 * CHUNK], 0, out=chunk).mul_(ctx.scale)
            chunk.view(bits).bitwise_and_(mask[: len(chunk)].to(bits))
        ctx.save_for_backward(result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (result,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(gradients[0], result, 0).mul_(ctx.scale), None, None


_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Type of the bits of a number, by its bytes."""


def _kept(x: Tensor, mask: Tensor, scale: float) -> Tensor:
    if not _is_narrow(x):
        return x * mask
    scaled = x * scale
    scaled.view(torch.int16).bitwise_and_(mask)
    return scaled


def _is_narrow(x: Tensor) -> bool:
    return x.element_size() == 2
