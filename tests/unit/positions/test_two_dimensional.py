import torch
from torch.testing import assert_close

from regardant.positions.sinusoidal import sinusoids
from regardant.positions.two_dimensional import TwoDimensionalConfig


def build(max_length):
    config = TwoDimensionalConfig(columns=3)
    return config.build(d_model=8, num_heads=2, head_size=4, max_length=max_length, causal=False)


def test_the_first_half_is_the_row_and_the_second_the_column():
    code = build(9).embed(torch.tensor([7]))[0]  # row 2, column 1
    assert_close(code, torch.cat([sinusoids(torch.tensor([at]), 4)[0] for at in (2, 1)]))


def test_past_the_length_it_was_built_for_it_goes_on():
    short, at = build(4), torch.arange(30)
    short.reach(30)
    assert_close(short.embed(at), build(30).embed(at))
