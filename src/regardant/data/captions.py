"""Rows of handwritten digits on a wide canvas, each with its digits in words: "three one seven".

The digits are those of `digits`, split as there, so that no digit of a test image is in a training image.
"""

from dataclasses import dataclass
from random import Random
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from regardant.data.digit_words import WORDS
from regardant.data.digits import DigitsConfig
from regardant.data.labelled import Labelled, LabelledConfig, Sets

SIDE = 8
"""Pixels of a digit on each side, and the height of a canvas."""

FEWEST, MOST = 2, 4
"""Smallest and largest number of digits on a canvas."""


@dataclass(frozen=True, eq=False)
class Caption:
    """A canvas of digits and its text."""

    image: NDArray[np.float32]
    """[8, width] from 0 to 1."""
    text: str
    starts: tuple[int, ...]
    """The first column of each digit, which is 8 columns wide."""


class DigitsCaptionsConfig(LabelledConfig):
    """Two to four handwritten digits of scikit-learn side by side, with random gaps; the text is their words.

    The seed decides which digits are tested on (20 %), and all images.
    """

    kind: Literal["digits_captions"] = "digits_captions"

    width: int = Field(40, ge=MOST * SIDE)
    """Columns of an image, which is 8 pixels high."""

    train_size: int = Field(20_000, gt=0)
    """Images to train on."""

    validation_size: int = Field(500, gt=0)
    """Images to validate on."""

    test_size: int = Field(1000, gt=0)
    """Images to test on."""

    def read(self, seed: int) -> Sets:
        """Return images [8, width] from 0 to 1 with their texts. Raises ConfigError without scikit-learn."""
        drawn = self.draw(seed)
        return {name: [(caption.image, caption.text) for caption in captions] for name, captions in drawn.items()}

    def draw(self, seed: int) -> dict[str, list[Caption]]:
        """Return the images and texts of `read` with the place of each digit."""
        digits = DigitsConfig(kind="digits", validation_share=self.validation_share).read(seed)
        sizes = {"train": self.train_size, "validation": self.validation_size, "test": self.test_size}
        random = Random(seed)
        return {name: [self._compose(digits[name], random) for _ in range(size)] for name, size in sizes.items()}

    def _compose(self, digits: list[Labelled], random: Random) -> Caption:
        """Return a canvas of random digits. All ways to share the free columns among the gaps are equally likely."""
        chosen = [random.choice(digits) for _ in range(random.randint(FEWEST, MOST))]
        free = self.width - SIDE * len(chosen)
        bars = sorted(random.sample(range(free + len(chosen)), len(chosen)))
        starts = tuple(bar - number + SIDE * number for number, bar in enumerate(bars))
        image = np.zeros((SIDE, self.width), np.float32)
        for start, (digit, _) in zip(starts, chosen, strict=True):
            image[:, start : start + SIDE] = digit
        return Caption(image, " ".join(WORDS[int(label)] for _, label in chosen), starts)
