"""Videos of a handwritten digit that moves, with the direction as label.

After Srivastava et al. 2015, "Unsupervised Learning of Video Representations using LSTMs" (Moving MNIST),
https://arxiv.org/abs/1502.04681. The digit wraps around the borders of the frame, so that no single frame tells the
direction; a video played backwards shows the same frames.

Shape legend: F frames, S side of a frame in pixels.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from regardant.data.digits import DigitsConfig
from regardant.data.labelled import Labelled, LabelledConfig, Sets

DIRECTIONS = {
    "up": (-1, 0),
    "up right": (-1, 1),
    "right": (0, 1),
    "down right": (1, 1),
    "down": (1, 0),
    "down left": (1, -1),
    "left": (0, -1),
    "up left": (-1, -1),
}
"""Pixels that a digit moves down and to the right from frame to frame, by label."""


class MovingDigitsConfig(LabelledConfig):
    """Digits of scikit-learn that move in one of eight directions, a pixel a frame. Each split has its own digits."""

    kind: Literal["moving_digits"] = "moving_digits"

    train_size: int = Field(4000, gt=0)
    """Videos to train on."""

    validation_size: int = Field(400, gt=0)
    """Videos to validate on."""

    test_size: int = Field(800, gt=0)
    """Videos to test on."""

    frames: int = Field(8, gt=1)
    """Frames of a video."""

    side: int = Field(16, ge=8)
    """Side of a frame in pixels."""

    def read(self, seed: int) -> Sets:
        """Return videos [F, S, S] from 0 to 1 with their directions. Raises ConfigError without scikit-learn."""
        digits = DigitsConfig(validation_share=self.validation_share).read(seed)
        sizes = {"train": self.train_size, "validation": self.validation_size, "test": self.test_size}
        return {
            name: [
                self._video([image for image, _ in digits[name]], np.random.default_rng([seed, split, number]))
                for number in range(count)
            ]
            for split, (name, count) in enumerate(sizes.items())
        }

    def _video(self, images: list[NDArray[Any]], generator: np.random.Generator) -> Labelled:
        image = images[generator.integers(len(images))]
        label = list(DIRECTIONS)[generator.integers(len(DIRECTIONS))]
        frame = np.zeros((self.side, self.side), np.float32)
        frame[: len(image), : len(image)] = image
        frame = np.roll(frame, generator.integers(self.side, size=2), (0, 1))
        down, right = DIRECTIONS[label]
        return np.stack([np.roll(frame, (down * at, right * at), (0, 1)) for at in range(self.frames)]), label
