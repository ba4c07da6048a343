"""The digits of scikit-learn: their splits, and what is said where they are missing."""

import sys
from collections import Counter

import numpy as np
import pytest

from regardant.data.digits import DigitsConfig
from regardant.errors import ConfigError

DIGITS = DigitsConfig(kind="digits")


def keys(items):
    return Counter((image.tobytes(), label) for image, label in items)


def test_a_fifth_is_tested_on_and_a_tenth_of_the_others_validated_on():
    sets = DIGITS.read(1)
    assert {name: len(items) for name, items in sets.items()} == {"train": 1293, "validation": 144, "test": 360}
    for image, label in sets["train"]:
        assert image.shape == (8, 8) and image.min() >= 0 and image.max() <= 1
        assert label in set("0123456789")
    assert max(image.max() for image, _ in sets["train"]) == 1


def test_every_split_has_the_same_share_of_each_label():
    for items in DIGITS.read(1).values():
        counts = Counter(label for _, label in items)
        assert len(counts) == 10
        assert max(counts.values()) - min(counts.values()) <= 0.12 * np.mean(list(counts.values())) + 1


def test_no_image_is_in_two_splits_and_the_seed_decides_which():
    sets, again, other = DIGITS.read(1), DIGITS.read(1), DIGITS.read(2**62)
    together = sum((keys(items) for items in sets.values()), Counter())
    assert together == sum((keys(items) for items in other.values()), Counter())
    assert together.total() == 1797
    for name, items in sets.items():
        assert keys(items) == keys(again[name])
        assert keys(items) != keys(other[name])


def test_the_share_to_validate_on_can_be_set():
    assert len(DigitsConfig(kind="digits", validation_share=0.3).read(1)["validation"]) == 432
    with pytest.raises(ConfigError, match=r"^data.validation_share: given 0.001; "):
        DigitsConfig(kind="digits", validation_share=0.001).read(1)


def test_without_scikit_learn_one_line_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ConfigError, match=r"^the digits come with scikit-learn: pip install 'regardant\[digits\]'$"):
        DIGITS.read(1)
