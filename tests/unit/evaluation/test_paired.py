"""The paired bootstrap: intervals and p of differences, from resampled items."""

import numpy as np
import pytest

from regardant.evaluation.paired import difference_by_bootstrap, paired_bootstrap, paired_over_seeds


def test_the_paired_bootstrap_tells_chance_from_a_difference():
    random = np.random.default_rng(1)
    first = random.random(400) < 0.5
    same = paired_bootstrap(first, first)
    assert (same.difference, same.interval, same.p) == (0, (0, 0), 1)
    better = paired_bootstrap(first, first | (random.random(400) < 0.3))
    assert better.p == 1 / 1001 and 0 < better.interval[0] < better.difference < better.interval[1]
    chance = paired_bootstrap(first, random.random(400) < 0.5)
    assert chance.interval[0] < 0 < chance.interval[1] and chance.p > 0.05
    spread = np.sqrt(np.var(np.asarray(random.random(400) < 0.5, float) - first) / 400)
    assert chance.interval[1] - chance.interval[0] == pytest.approx(2 * 1.96 * spread, rel=0.15)


def test_the_paired_bootstrap_resamples_all_items():
    """The difference is in the last item: resamples without it would show none."""
    found = paired_bootstrap([0, 0, 0], [0, 0, 3], samples=4000)
    assert found.difference == 1
    assert found.interval == (0, 3)  # with a chance of 8/27 no resample holds it, with one of 1/27 all do


def test_p_counts_both_tails():
    found = difference_by_bootstrap(1.0, np.array([-1.0, 0.0, 1.0, 2.0, 3.0]), 40)
    assert found.p == (4 + 1) / (5 + 1)  # all but 1 are at least as far from 1 as 0 is: two on either side
    assert found.interval == pytest.approx((-0.9, 2.9))


@pytest.mark.parametrize(("items", "p"), [(1, 1), (2, 1 / 2), (5, 1 / 16), (9, 1 / 256), (40, 1 / 1001)])
def test_a_few_items_that_agree_tell_no_more_than_their_signs(items, p):
    found = paired_bootstrap([0.0] * items, [1.0] * items)
    assert found.p == pytest.approx(p)
    assert (found.verdict() == "better") == (p <= 0.05)


def test_answers_to_one_item_are_resampled_together():
    """Of 40 items with ten answers each, one differs in all of its answers: a resample may hold none of it."""
    groups = np.repeat(np.arange(40), 10)
    first, other = np.zeros(400), (groups == 7).astype(float)
    together, alone = paired_bootstrap(first, other, groups), paired_bootstrap(first, other)
    assert together.difference == alone.difference == 10 / 400
    assert together.interval[0] == 0 and together.p > 0.5
    assert alone.interval[0] > 0 and alone.p < 0.05


def test_an_item_counts_as_often_as_it_has_answers():
    random, samples = np.random.default_rng(2), 50
    groups = np.repeat([9, 2, 5, 3, 8, 1], [1, 7, 2, 30, 4, 6])
    first, other = random.random(50), random.random(50)
    generator, expected = np.random.default_rng(0), []
    for _ in range(samples):
        drawn = np.unique(groups)[generator.integers(0, 6, 6)]
        rows = np.concatenate([np.flatnonzero(groups == one) for one in drawn])
        expected.append(other[rows].mean() - first[rows].mean())
    found = paired_bootstrap(first, other, groups, samples)
    assert found.difference == pytest.approx(other.mean() - first.mean())
    assert found.interval == pytest.approx(tuple(np.quantile(expected, [0.025, 0.975])))


def test_seeds_are_paired_and_tested_by_student_s_t():
    found = paired_over_seeds([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])  # differences 1, 2, 3: t = 2 sqrt(3), two degrees
    assert found.difference == 2.0
    assert found.interval == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))
    assert found.p == pytest.approx(0.0741799, abs=1e-6)


def test_one_seed_and_equal_differences_cannot_be_tested():
    assert paired_over_seeds([1.0], [2.0]) is None
    assert paired_over_seeds([1.0, 2.0], [2.0, 3.0]) is None
