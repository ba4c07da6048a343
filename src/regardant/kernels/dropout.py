"""Dropout masks: bits of Philox, a pure function of a seed and the index of an element.

Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", https://doi.org/10.1145/2063384.2063405. A backward
pass draws the same bits again. Eight elements share a call, with 16 bits each and the seven rounds that suffice there.
"""

import triton
import triton.language as tl

DRAWS = 1 << 16


def dropped_draws(rate: float) -> tuple[int, float]:
    """Return the number of draws, out of `DRAWS`, that drop an element, and the factor of kept elements."""
    return min(round(rate * DRAWS), DRAWS - 1), 1 / (1 - rate)


@triton.jit
def keeps(seed, block, dropped, BLOCK: tl.constexpr):
    """Return the mask of kept elements of block number `block`, [BLOCK]. BLOCK is at least 8."""
    calls = tl.cast(block, tl.int32) * (BLOCK // 8) + tl.arange(0, BLOCK // 8)  # rounds of 64 bits are slow
    first, second, third, fourth = tl.randint4x(seed, calls, 7)
    words = tl.join(tl.join(first, second), tl.join(third, fourth))
    draws = tl.join(words & 0xFFFF, (words >> 16) & 0xFFFF)
    return tl.reshape(draws, (BLOCK,)).to(tl.int32) >= dropped
