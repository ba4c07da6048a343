import math

import pytest
import torch
from torch.testing import assert_close

from regardant.positions import SinusoidalConfig
from regardant.positions.sinusoidal import sinusoids

OF_FOUR = [
    [0, 1, 0, 1],
    [0.841471, 0.540302, 0.010000, 0.999950],
    [0.909297, -0.416147, 0.019999, 0.999800],
    [0.141120, -0.989992, 0.029996, 0.999550],
]
SECOND_OF_EIGHT = [0.841471, 0.540302, 0.099833, 0.995004, 0.010000, 0.999950, 0.001000, 1.000000]


def test_the_first_positions_of_four_numbers_are_right_to_six_digits():
    assert_close(sinusoids(torch.arange(4), 4), torch.tensor(OF_FOUR), rtol=0, atol=6e-7)


def test_position_one_of_eight_numbers_is_right_to_six_digits():
    assert_close(sinusoids(torch.tensor([1]), 8)[0], torch.tensor(SECOND_OF_EIGHT), rtol=0, atol=6e-7)


@pytest.mark.parametrize("d_model", [6, 7, 512])
def test_every_number_is_the_formula_however_far(d_model):
    for position in (0, 5, 9_999):
        code = sinusoids(torch.tensor([position]), d_model)[0].tolist()
        for i in range(d_model):
            angle = position / 10000 ** ((i - i % 2) / d_model)
            assert code[i] == pytest.approx(math.cos(angle) if i % 2 else math.sin(angle), abs=1e-6)


def test_the_scheme_gives_the_rows_of_its_positions():
    scheme = SinusoidalConfig().build(d_model=6, num_heads=2, head_size=6 // 2, max_length=20, causal=False)
    at = torch.tensor([19, 3, 3])
    assert scheme.acts_on == "input"
    assert_close(scheme.embed(at), sinusoids(at, 6))


def test_past_the_length_it_was_built_for_it_goes_on():
    scheme = SinusoidalConfig().build(d_model=6, num_heads=2, head_size=6 // 2, max_length=20, causal=False)
    at = torch.tensor([19, 20, 63])
    scheme.reach(64)
    assert_close(scheme.embed(at), sinusoids(at, 6))


def test_who_writes_token_by_token_does_not_make_the_table_anew_for_each():
    scheme = SinusoidalConfig().build(d_model=6, num_heads=2, head_size=6 // 2, max_length=20, causal=False)
    sizes = []
    for length in range(1, 100):
        scheme.reach(length)
        sizes.append(len(scheme.table))
    assert sorted(set(sizes)) == [20, 40, 80, 160]


def test_the_table_is_neither_learned_nor_saved():
    scheme = SinusoidalConfig().build(d_model=6, num_heads=2, head_size=6 // 2, max_length=20, causal=False)
    assert not list(scheme.parameters()) and not scheme.state_dict()


@pytest.mark.parametrize("d_model", [6, 7])
def test_halves_are_all_sines_and_then_all_cosines(d_model):
    scheme = SinusoidalConfig(layout="halves").build(
        d_model=d_model, num_heads=1, head_size=d_model, max_length=20, causal=False
    )
    waves = [13 / 10000 ** (2 * i / d_model) for i in range((d_model + 1) // 2)]
    expected = [math.sin(angle) for angle in waves] + [math.cos(angle) for angle in waves[: d_model // 2]]
    assert scheme.embed(torch.tensor([13]))[0].tolist() == pytest.approx(expected, abs=1e-6)
