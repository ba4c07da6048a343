import numpy as np
import pytest

from regardant.errors import DataError
from regardant.evaluation.power_law import fit_power_law

SIZES = [1e4, 3e4, 1e5, 3e5]


def planted(exponent: float, *, noise: float, seed: int, floor: float = 0.0):
    """Four sizes with three seeds each."""
    random = np.random.default_rng(seed)
    x = np.repeat(SIZES, 3)
    return x, (floor + 20 * x**-exponent) * np.exp(noise * random.standard_normal(len(x)))


def test_an_exact_law_is_found_exactly():
    x, loss = planted(0.076, noise=0, seed=0)
    law = fit_power_law(x, loss)
    assert law.exponent == pytest.approx(0.076)
    assert (law.constant, law.r_squared) == (pytest.approx(20), pytest.approx(1))
    assert law.loss(1e4) == pytest.approx(loss[0])


def test_the_interval_holds_a_planted_exponent_as_often_as_it_says():
    held = 0
    for seed in range(200):
        low, high = fit_power_law(*planted(0.3, noise=0.05, seed=seed)).interval
        held += low <= 0.3 <= high
    assert 180 <= held <= 198  # of 200, 95 % are 190


def test_seeds_of_a_size_that_is_off_the_line_are_one_observation():
    law = fit_power_law(np.repeat(SIZES, 3), np.repeat([3.0, 2.0, 2.0, 2.0], 3))
    means = fit_power_law(SIZES, [3.0, 2.0, 2.0, 2.0])
    assert law.interval == pytest.approx(means.interval)
    assert law.interval[0] < 0 < law.interval[1]


def test_a_floor_is_found_beneath():
    law = fit_power_law(*planted(0.5, noise=0, seed=0, floor=1.5))
    assert law.floor == pytest.approx(1.5, abs=0.02)
    assert law.exponent_above_floor == pytest.approx(0.5, abs=0.05)
    assert law.exponent < 0.1  # the line alone is bent by the floor
    assert law.lines()[-1].endswith(", without intervals")


def test_three_sizes_are_too_few_for_a_floor():
    x = np.repeat(SIZES[:3], 3)
    law = fit_power_law(x, 1.5 + 20 * x**-0.5)
    assert law.floor is None and law.exponent_above_floor is None
    assert law.lines()[-1] == "with a floor    no fit: fewer than four sizes, or it did not converge"


@pytest.mark.parametrize(
    ("x", "loss", "message"),
    [
        ([1, 2, 3], [3, 2, 1], "3 points at 3 sizes are too few"),
        ([1, 1, 2, 2], [3, 3, 2, 2], "4 points at 2 sizes are too few"),
        ([1, 2, 3, 4], [3, 2, 1, 0], "positive and finite"),
        ([1, 2, 3, 4], [3, 2, 1, float("nan")], "positive and finite"),
    ],
)
def test_points_that_make_no_law_are_refused(x, loss, message):
    with pytest.raises(DataError, match=message):
        fit_power_law(x, loss)
