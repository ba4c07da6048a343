import cmath

import pytest
import torch
from torch.testing import assert_close

from regardant.positions.rotary import RotaryConfig

HEAD_SIZE = 6


def build(head_size=HEAD_SIZE, base=10000.0, max_length=50):
    return RotaryConfig(base=base).build(
        d_model=12, num_heads=2, head_size=head_size, max_length=max_length, causal=False
    )


def test_pairs_are_turned_as_complex_numbers_are():
    """Su et al. 2021, eq. 34: (x_2i + i x_(2i+1)) e^(i m theta_i), theta_i = base^(-2i/d)."""
    x = torch.randn(1, 1, 4, HEAD_SIZE)
    turned = build(base=100.0).turn(x, torch.tensor([0, 1, 7, 49]))
    for row, position in enumerate((0, 1, 7, 49)):
        for i in range(HEAD_SIZE // 2):
            before, after = (complex(*y[0, 0, row, 2 * i : 2 * i + 2].tolist()) for y in (x, turned))
            angle = position * 100.0 ** (-2 * i / HEAD_SIZE)
            assert after == pytest.approx(before * cmath.exp(1j * angle), abs=1e-5)


def test_products_depend_on_the_distance_alone():
    q, k = torch.randn(2, 1, 1, 1, HEAD_SIZE)
    scheme = build()

    def product(at_query, at_key):
        return (scheme.turn(q, torch.tensor([at_query])) * scheme.turn(k, torch.tensor([at_key]))).sum()

    for at in (0, 3, 30):
        assert_close(product(at + 9, at), product(9, 0), rtol=0, atol=1e-5)
        assert_close(product(at, at), (q * k).sum(), rtol=0, atol=1e-5)
    assert abs(product(9, 0) - product(0, 9)) > 1e-3


def test_past_the_length_it_was_built_for_it_goes_on():
    short, long, x = build(max_length=5), build(max_length=400), torch.randn(1, 2, 3, HEAD_SIZE)
    at = torch.tensor([4, 5, 399])
    short.reach(400)
    assert_close(short.turn(x, at), long.turn(x, at))
    assert not short.state_dict()


def test_a_head_that_cannot_be_cut_into_pairs_is_refused():
    with pytest.raises(
        ValueError, match=r"^rotary positions rotate pairs, and a head has 5 numbers: change num_heads or key_size$"
    ):
        build(head_size=5)
