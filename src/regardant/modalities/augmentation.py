"""Augmentation of training images by albumentations: a pure function of a seed, so that it can be reproduced.

Buslaev et al. 2020, "Albumentations", https://arxiv.org/abs/1809.06839.

Shape legend: H height, W width, C channels.
"""

import os
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regardant.errors import ConfigError

AugmentationName = Literal["flip", "shift", "rotate", "crop", "brightness"]

SHIFT = 0.125
"""Largest shift, as a share of a side."""

ROTATION = 15
"""Largest rotation in degrees."""

CROP = 0.6
"""Smallest share of the area that a crop keeps."""

BRIGHTNESS = 0.2
"""Largest change of brightness, and of contrast."""


def augmented(
    pixels: NDArray[np.float32], changes: Sequence[AugmentationName], seed: Sequence[int]
) -> NDArray[np.float32]:
    """Return an image [H, W, C] from 0 to 1, changed at random and of the same size.

    Raises ConfigError if albumentations is not installed.
    """
    height, width, _ = pixels.shape
    compose = _composed(tuple(changes), height, width)
    compose.set_random_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
    changed: NDArray[np.float32] = compose(image=np.array(pixels))["image"]
    return changed.clip(0, 1)


@cache
def _composed(changes: tuple[AugmentationName, ...], height: int, width: int) -> Any:
    """Return the changes in their order for images of one size. Pixels beyond the edge mirror those inside."""
    os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # otherwise the import asks the network for a newer version
    try:
        import albumentations as library
        import cv2
    except ModuleNotFoundError as error:
        raise ConfigError("input.augment needs albumentations: pip install 'regardant[augment]'") from error
    mirrored = {"border_mode": cv2.BORDER_REFLECT_101, "p": 1.0}
    # In pixels: the library truncates shares of a side to whole pixels, so that small images would not move.
    right, down = (max(1, round(SHIFT * side)) for side in (width, height))
    known: dict[AugmentationName, Any] = {
        "flip": library.HorizontalFlip(p=0.5),
        "shift": library.Affine(translate_px={"x": (-right, right), "y": (-down, down)}, **mirrored),
        "rotate": library.Affine(rotate=(-ROTATION, ROTATION), **mirrored),
        "crop": library.RandomResizedCrop((height, width), scale=(CROP, 1.0), p=1.0),
        "brightness": library.RandomBrightnessContrast(BRIGHTNESS, BRIGHTNESS, p=1.0),
    }
    return library.Compose([known[change] for change in changes])
