"""Canvases of digits: what is on them, where, and from which split."""

import itertools
from collections import Counter

import numpy as np
import pytest
from pydantic import ValidationError

from regardant.data.captions import SIDE, DigitsCaptionsConfig
from regardant.data.digit_words import WORDS
from regardant.data.digits import DigitsConfig

CONFIG = DigitsCaptionsConfig(kind="digits_captions", train_size=300, validation_size=100, test_size=200)


@pytest.fixture(scope="module")
def drawn():
    return CONFIG.draw(1)


def test_each_word_stands_for_the_digit_at_its_place_and_the_rest_is_empty(drawn):
    digits = {
        name: {image.tobytes(): label for image, label in items} for name, items in DigitsConfig().read(1).items()
    }
    for name, captions in drawn.items():
        for caption in captions:
            assert caption.image.shape == (8, 40) and caption.image.dtype == np.float32
            parts = [caption.image[:, start : start + SIDE] for start in caption.starts]
            labels = [digits[name][np.ascontiguousarray(part).tobytes()] for part in parts]
            assert caption.text == " ".join(WORDS[int(label)] for label in labels)
            assert sum(part.sum() for part in parts) == pytest.approx(caption.image.sum())


def test_digits_do_not_overlap_and_stand_everywhere(drawn):
    starts = [caption.starts for captions in drawn.values() for caption in captions]
    assert all(after - before >= SIDE for row in starts for before, after in itertools.pairwise(row))
    assert all(row[0] >= 0 and row[-1] <= 40 - SIDE for row in starts)
    assert {start for row in starts for start in row} == set(range(40 - SIDE + 1))
    counts = Counter(map(len, starts))
    assert set(counts) == {2, 3, 4} and min(counts.values()) > 150


def test_the_items_are_the_same_for_one_seed_and_others_for_another(drawn):
    sets, other = CONFIG.read(1), CONFIG.read(2)
    assert {name: len(items) for name, items in sets.items()} == {"train": 300, "validation": 100, "test": 200}
    for name, items in sets.items():
        assert [text for _, text in items] == [caption.text for caption in drawn[name]]
        assert all(np.array_equal(image, one.image) for (image, _), one in zip(items, drawn[name], strict=True))
        assert [text for _, text in items] != [text for _, text in other[name]]


def test_a_canvas_too_narrow_for_four_digits_is_refused():
    with pytest.raises(ValidationError, match="greater than or equal to 32"):
        DigitsCaptionsConfig(kind="digits_captions", width=31)
