"""Automatic sizes of images and of their patches; and resizing of images.

Shape legend: H height, W width, C channels.
"""

from collections.abc import Collection
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import interpolate

Size = tuple[int, int]
"""Height and width in pixels."""

LEAST_PATCH = 2
"""Minimum side of a patch in pixels: a single pixel carries little information."""

LEAST_PATCHES, MOST_PATCHES = 9, 64
"""Minimum and maximum number of patches of an image. The cost of attention grows with its square."""

LONGEST_SIDE = 256
"""Longest side, in pixels, of an image that keeps its size."""

LARGEST_SQUARE, GRID = 64, 8
"""Side, in pixels, of the largest square that images are resized to, and the divisor of every such side."""


def fitting_patch(size: Size) -> int | None:
    """Return the side of the smallest patches of which an image has 9 to 64. None: no patch fits."""
    height, width = size
    sides = [side for side in range(LEAST_PATCH, min(size) + 1) if height % side == width % side == 0]
    return next((side for side in sides if LEAST_PATCHES <= height * width // side**2 <= MOST_PATCHES), None)


def common_size(sizes: Collection[Size]) -> Size:
    """Return the size that images of these sizes are resized to.

    This is their own size if all have one, patches fit it and no side is longer than 256 pixels. Otherwise it is a
    square whose side is the median of the shorter sides, rounded down to a multiple of 8 pixels, from 8 to 64.
    """
    first = next(iter(sizes))
    if all(size == first for size in sizes) and max(first) <= LONGEST_SIDE and fitting_patch(first):
        return first
    side = int(median(min(size) for size in sizes)) // GRID * GRID
    side = min(LARGEST_SQUARE, max(GRID, side))
    return side, side


def resized(pixels: NDArray[np.float32], size: Size) -> NDArray[np.float32]:
    """Return an image [H, W, C] with another height and width. Its aspect ratio is not kept.

    Each new pixel is a weighted mean of all pixels under it (bilinear, antialiased).
    """
    if pixels.shape[:2] == size:
        return pixels
    block = torch.from_numpy(pixels).permute(2, 0, 1)[None]
    block = interpolate(block, size, mode="bilinear", antialias=True)
    return block[0].permute(1, 2, 0).contiguous().numpy()
