"""Videos of moving digits: what moves where, and what tells nothing."""

from itertools import pairwise

import numpy as np
import pytest

from regardant.data.digits import DigitsConfig
from regardant.data.moving_digits import DIRECTIONS, MovingDigitsConfig

SMALL = MovingDigitsConfig(train_size=60, validation_size=20, test_size=20)


@pytest.fixture(scope="module")
def sets():
    return SMALL.read(1)


def test_a_digit_moves_a_pixel_a_frame_in_the_direction_of_its_label(sets):
    assert {name: len(items) for name, items in sets.items()} == {"train": 60, "validation": 20, "test": 20}
    assert {label for _, label in sets["train"]} == set(DIRECTIONS)
    for video, label in sets["train"]:
        assert video.shape == (8, 16, 16) and video.dtype == np.float32
        for before, after in pairwise(video):
            assert np.array_equal(np.roll(before, DIRECTIONS[label], (0, 1)), after)


def test_every_split_has_its_own_digits(sets):
    digits = DigitsConfig().read(1)

    def shown(items):
        """Return the sorted pixels of each digit, which moving leaves as they are."""
        return {tuple(sorted(video[0][video[0] > 0])) for video, _ in items}

    for name, items in sets.items():
        own = {tuple(sorted(image[image > 0])) for image, _ in digits[name]}
        assert shown(items) <= own


def test_videos_follow_the_seed(sets):
    again, other = SMALL.read(1), SMALL.read(2)
    same = [np.array_equal(one[0], two[0]) for one, two in zip(sets["train"], again["train"], strict=True)]
    assert all(same)
    assert any(not np.array_equal(a[0], b[0]) for a, b in zip(sets["train"], other["train"], strict=True))
