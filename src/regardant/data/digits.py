"""Handwritten digits, 8 x 8 pixels in 17 levels of grey, with a label from 0 to 9: the 1,797 that come with
scikit-learn.

Alpaydin and Kaynak 1998, "Optical Recognition of Handwritten Digits", https://doi.org/10.24432/C50P49 (its test set).
"""

from typing import Any, Literal

import numpy as np

from regardant.data.labelled import LabelledConfig, Sets
from regardant.errors import ConfigError

TEST_SHARE = 0.2
"""Share of all digits to test on."""

BRIGHTEST = 16
"""Largest value of a pixel."""


class DigitsConfig(LabelledConfig):
    """The handwritten digits of scikit-learn. The seed decides the test set (20 %) too."""

    kind: Literal["digits"] = "digits"

    def read(self, seed: int) -> Sets:
        """Return images [8, 8] from 0 to 1 with their labels; all splits have the same share of each label.

        Raises ConfigError if scikit-learn is not installed.
        """
        try:
            from sklearn.datasets import load_digits
            from sklearn.model_selection import train_test_split
        except ModuleNotFoundError as error:
            raise ConfigError("the digits come with scikit-learn: pip install 'regardant[digits]'") from error
        images, numbers = load_digits(return_X_y=True)
        images = (images.reshape(-1, 8, 8) / BRIGHTEST).astype(np.float32)
        items: list[Any] = list(zip(images, map(str, numbers), strict=True))

        def split(given: list[Any], share: float) -> tuple[list[Any], list[Any]]:
            rest, part = train_test_split(
                given, test_size=share, stratify=[label for _, label in given], random_state=seed % 2**32
            )
            return rest, part

        rest, test = split(items, TEST_SHARE)
        try:
            train, validation = split(rest, self.validation_share)
        except ValueError as error:
            raise ConfigError(f"data.validation_share: given {self.validation_share}; {error}") from error
        return {"train": train, "validation": validation, "test": test}
