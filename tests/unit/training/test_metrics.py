"""When a validation is the best one, which weights are kept, and when training gives up."""

import math

import pytest

from regardant.training.metrics import BestValidation


def recorded(*scores, noise=0.0):
    """The state after validations at updates 10, 20, ..., and whether the weights of each were to be kept."""
    best = BestValidation()
    return best, [best.record(score, 10 * number, noise) for number, score in enumerate(scores, 1)]


def test_only_a_higher_score_is_better():
    best, keeps = recorded(-2.0, -3.0, -2.0, -1.0, -1.5)
    assert keeps == [True, False, False, True, False]
    assert (best.best, best.best_update, best.without_better) == (-1.0, 40, 1)
    assert (best.kept, best.kept_update) == (-1.0, 40)


def test_later_weights_are_kept_if_they_differ_from_the_best_by_noise_only():
    best, keeps = recorded(40.0, 41.0, 40.75, 40.25, 40.5, 40.625, noise=0.5)
    assert keeps == [True, True, True, False, False, True]
    assert (best.kept, best.kept_update) == (40.625, 60)


def test_noise_changes_neither_the_best_validation_nor_when_training_stops():
    best, _ = recorded(41.0, 40.75, 40.5625, noise=0.5)  # each differs from the one before by noise, not from the best
    assert (best.best, best.best_update, best.without_better) == (41.0, 10, 2)
    assert best.stops(2)
    assert not best.record(40.25, 40, 0.5)


@pytest.mark.parametrize("score", [math.nan, -math.inf])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_first_validation_is_the_best_whatever_its_score(score, noise):
    best, keeps = recorded(score, score, noise=noise)
    assert keeps == [True, False] and best.best_update == best.kept_update == 10


def test_a_number_is_better_than_a_score_of_nan():
    best, keeps = recorded(math.nan, -math.inf, -3.0, math.nan, -2.0)
    assert keeps == [True, False, True, False, True]
    assert (best.best, best.best_update, best.without_better) == (-2.0, 50, 0)


def test_training_stops_after_as_many_validations_as_patience_allows():
    best, _ = recorded(1.0, 0.5, 0.5)
    assert best.stops(2) and not best.stops(3)
    assert not best.stops(None)
    assert best.record(2.0, 40) and not best.stops(1)
