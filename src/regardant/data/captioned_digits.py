"""Handwritten digits with captions: the images of `digits`, each with one of several texts that name its digit."""

from collections.abc import Mapping
from random import Random
from typing import Literal

from regardant.data.digit_words import WORDS
from regardant.data.digits import DigitsConfig
from regardant.data.item_pairs import ItemPair, ItemPairsConfig

TEMPLATES = (
    "{article} {word}",
    "the digit {digit}",
    "the number {word}",
    "a handwritten {word}",
    "a picture of {article} {word}",
    "someone wrote {article} {word}",
    "a small grey {digit}",
)
"""Templates of captions."""

PROMPT = "the digit {word}"
"""Template of the prompt for a digit, by which images are classified. No caption equals a prompt."""


class CaptionedDigitsConfig(ItemPairsConfig):
    """The handwritten digits of scikit-learn with captions. The seed decides captions and the test set (20 %) too."""

    kind: Literal["digits"] = "digits"

    prompts: Mapping[str, str] = {str(digit): PROMPT.format(word=word) for digit, word in enumerate(WORDS)}
    """A text for each digit, by which images are classified. Empty: an image is compared with all captions."""

    def read(self, seed: int, *, files: tuple[bool, bool]) -> dict[str, list[ItemPair]]:
        """Return images [8, 8] from 0 to 1 with a caption drawn for each, labelled by the digit.

        Raises ConfigError if scikit-learn is not installed.
        """
        random, sets = Random(seed), DigitsConfig(validation_share=self.validation_share).read(seed)
        return {
            name: [ItemPair(image, caption(int(label), random.choice(TEMPLATES)), label) for image, label in items]
            for name, items in sets.items()
        }


def caption(digit: int, template: str) -> str:
    """Return the caption of a digit, as "an eight" or "the digit 8"."""
    word = WORDS[digit]
    return template.format(digit=digit, word=word, article="an" if word == "eight" else "a")
