"""Handwritten digits with a question about each: "is it even", "is it larger than four", answered by yes or no.

Neither part alone gives the answer: every question is true of five of the ten digits, and every digit makes half of the
questions true, since each question has its opposite.
"""

from collections.abc import Sequence
from random import Random
from typing import Literal

from pydantic import Field

from regardant.data.digits import DigitsConfig
from regardant.data.labelled import Labelled, LabelledConfig, Sets

QUESTIONS: tuple[tuple[str, frozenset[int]], ...] = (
    ("is it even", frozenset({0, 2, 4, 6, 8})),
    ("is it odd", frozenset({1, 3, 5, 7, 9})),
    ("is it larger than four", frozenset({5, 6, 7, 8, 9})),
    ("is it smaller than five", frozenset({0, 1, 2, 3, 4})),
    ("is it at most one or at least seven", frozenset({0, 1, 7, 8, 9})),
    ("is it between two and six", frozenset({2, 3, 4, 5, 6})),
)
"""Questions with the digits for which the answer is yes. Each is followed by its opposite."""


class DigitQuestionsConfig(LabelledConfig):
    """The handwritten digits of scikit-learn with questions: items have the parts `image` and `question`.

    The seed decides which digits are tested on (20 %), and all questions.
    """

    kind: Literal["digit_questions"] = "digit_questions"

    train_size: int = Field(20_000, gt=0)
    """Items to train on."""

    validation_size: int = Field(1000, gt=0)
    """Items to validate on."""

    test_size: int = Field(2000, gt=0)
    """Items to test on."""

    def read(self, seed: int) -> Sets:
        """Return items with an image [8, 8] from 0 to 1 and a question, and the answers yes and no.

        Raises ConfigError if scikit-learn is not installed.
        """
        digits = DigitsConfig(validation_share=self.validation_share).read(seed)
        sizes = {"train": self.train_size, "validation": self.validation_size, "test": self.test_size}
        random = Random(seed)
        return {name: [_asked(digits[name], random) for _ in range(size)] for name, size in sizes.items()}


def _asked(digits: Sequence[Labelled], random: Random) -> Labelled:
    """Return a random digit with a random question, and the answer."""
    image, digit = random.choice(digits)
    question, true_of = random.choice(QUESTIONS)
    return {"question": question, "image": image}, "yes" if int(digit) in true_of else "no"
