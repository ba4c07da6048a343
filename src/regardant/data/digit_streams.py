"""Captions and images of handwritten digits as one text: words are spelled in letters, images in codes of patches.

Ramesh et al. 2021, "Zero-Shot Text-to-Image Generation" (DALL-E), https://arxiv.org/abs/2102.12092, section 2: one
stream of text and image tokens, which a decoder-only model continues. Codes are the centroids of k-means here, not
those of a learned encoder. A code is one character, so that letters and codes share the vocabulary of a text.

Shape legend: C codes, P pixels of a patch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from regardant.data.captioned_digits import TEMPLATES, caption
from regardant.data.digits import DigitsConfig
from regardant.data.labelled import Labelled, Sets
from regardant.data.text import TextConfig
from regardant.errors import DataError

SIDE = 8
"""Pixels of an image on each side."""

PATCH = 2
"""Pixels of a patch on each side."""

CODES_OF_AN_IMAGE = (SIDE // PATCH) ** 2

FIRST_CODE = 0x2800
"""Code point of code 0. The 256 Braille characters are in no caption."""

SEPARATOR = ": "
"""Characters between a caption and the codes of its image, or the codes and the caption."""


@dataclass(frozen=True, eq=False)
class Codebook:
    """Codebook of patches, for the vector quantisation of images."""

    centroids: NDArray[np.float32]
    """[C, P] pixels of each code."""

    @classmethod
    def fit(cls, images: Sequence[NDArray[np.float32]], codes: int, seed: int) -> Self:
        """Return the centroids of the patches of images [8, 8]. Raises ConfigError without scikit-learn."""
        from sklearn.cluster import MiniBatchKMeans  # DigitsConfig raises before if it is not installed

        patches = np.concatenate([_patches(image) for image in images])
        found = MiniBatchKMeans(codes, random_state=seed % 2**32, n_init=3).fit(patches)
        return cls(found.cluster_centers_.astype(np.float32))

    def encode(self, image: NDArray[np.float32]) -> str:
        """Return the codes of an image [8, 8] in reading order, a character each."""
        distances = ((_patches(image)[:, None] - self.centroids) ** 2).sum(-1)
        return "".join(chr(FIRST_CODE + int(code)) for code in distances.argmin(1))

    def decode(self, text: str) -> NDArray[np.float32]:
        """Return the image [8, 8] of codes. Raises DataError for a text that is not the codes of one image."""
        codes = [ord(character) - FIRST_CODE for character in text]
        if len(codes) != CODES_OF_AN_IMAGE or not all(0 <= code < len(self.centroids) for code in codes):
            raise DataError(
                f"{text!r} is not an image: an image is {CODES_OF_AN_IMAGE} codes, of {len(self.centroids)} different "
                "ones"
            )
        across = SIDE // PATCH
        grid = self.centroids[codes].reshape(across, across, PATCH, PATCH)
        return grid.swapaxes(1, 2).reshape(SIDE, SIDE)


class DigitStreamsConfig(TextConfig):
    """Lines with a caption and the image of a digit of scikit-learn, in either order. No digit is in two splits."""

    kind: Literal["digit_streams"] = "digit_streams"

    codes: int = Field(64, gt=1, le=256)
    """Codes of patches of 2 x 2 pixels, learned from training images by k-means."""

    train_size: int = Field(20_000, gt=0)
    """Lines to train on."""

    validation_size: int = Field(1000, gt=0)
    """Lines to validate on."""

    test_size: int = Field(1000, gt=0)
    """Lines to test on."""

    seed: int = 1
    """Seed of splits, codes and captions."""

    def pieces(self) -> Iterator[str]:
        yield from self.texts().values()

    def sizes(self) -> dict[str, int]:
        return {name: len(text) for name, text in self.texts().items()}

    def texts(self) -> dict[str, str]:
        """Return the text of each split. Raises ConfigError if scikit-learn is not installed."""
        sizes = {"train": self.train_size, "validation": self.validation_size, "test": self.test_size}
        random, book, digits = Random(self.seed), self.codebook(), _digits(self.seed)
        return {
            name: "".join(_line(random.choice(digits[name]), book, random) for _ in range(size))
            for name, size in sizes.items()
        }

    def codebook(self) -> Codebook:
        """Return the codebook, fitted to training images."""
        return _codebook(self.codes, self.seed)


def _line(item: Labelled, book: Codebook, random: Random) -> str:
    image, digit = item
    parts = [caption(int(digit), random.choice(TEMPLATES)), book.encode(image)]
    return SEPARATOR.join(parts if random.random() < 0.5 else parts[::-1]) + "\n"


@cache
def _digits(seed: int) -> Sets:
    return DigitsConfig().read(seed)


@cache
def _codebook(codes: int, seed: int) -> Codebook:
    return Codebook.fit([image for image, _ in _digits(seed)["train"]], codes, seed)


def _patches(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the patches of an image in reading order [16, P]."""
    across = SIDE // PATCH
    return image.reshape(across, PATCH, across, PATCH).swapaxes(1, 2).reshape(-1, PATCH * PATCH)
