"""Positions of times, rows and columns."""

import pytest
import torch
from torch.testing import assert_close

from regardant.positions.sinusoidal import sinusoids
from regardant.positions.three_dimensional import ThreeDimensionalConfig


def built(size=14, rows=2, columns=3):
    config = ThreeDimensionalConfig(rows=rows, columns=columns)
    return config.build(d_model=size, num_heads=1, head_size=size, max_length=12, causal=False)


def test_each_axis_has_sinusoids_of_its_own():
    found = built().embed(torch.tensor([[5, 0, 7]]))
    expected = torch.cat([sinusoids(torch.tensor([at]), size) for at, size in ((5, 6), (0, 4), (7, 4))], 1)
    assert_close(found, expected)


def test_places_in_reading_order_are_times_rows_and_columns():
    scheme = built()
    places = torch.cartesian_prod(torch.arange(2), torch.arange(2), torch.arange(3))
    assert_close(scheme.embed(torch.arange(12)), scheme.embed(places))
    assert len(scheme.embed(places).unique(dim=0)) == 12


def test_a_vector_without_room_for_three_axes_is_refused():
    with pytest.raises(ValueError, match="positions in a video need at least 6 numbers, not 4: raise d_model"):
        built(size=4)
