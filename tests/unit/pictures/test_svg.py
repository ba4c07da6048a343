import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from regardant.pictures.svg import SHADES, shaded


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 99))
def test_every_cell_has_the_shade_nearest_to_its_weight(rows, columns, seed):
    weights = np.random.default_rng(seed).random((rows, columns)).round(1)
    drawn = np.zeros((rows, columns))
    for opacity, lines in re.findall(
        r'<path stroke-opacity="([^"]+)" d="([^"]+)"/>', "".join(shaded(weights, 0, 0, 1))
    ):
        for column, row, length in re.findall(r"M(\d+) (\d+)\.5h(\d+)", lines):
            assert not drawn[int(row), int(column) : int(column) + int(length)].any()
            drawn[int(row), int(column) : int(column) + int(length)] = float(opacity)
    assert np.abs(drawn - weights).max() <= 0.5 / SHADES + 1e-4


def test_neighbours_of_one_shade_are_one_line():
    assert shaded(np.array([[1.0, 1.0, 0.0, 1.0]]), 0, 0, 1)[1:-1] == [
        '<path stroke-opacity="1" d="M0 0.5h2M3 0.5h1"/>'
    ]
