"""When a validation is the best one, and when training gives up."""

import math

import pytest

from regardant.training.early_stopping import BestValidation


def recorded(*scores):
    """The state after validations at updates 10, 20, ..., and whether each was the best so far."""
    best = BestValidation()
    return best, [best.record(score, 10 * number) for number, score in enumerate(scores, 1)]


def test_only_a_higher_score_is_better():
    best, was_best = recorded(-2.0, -3.0, -2.0, -1.0, -1.5)
    assert was_best == [True, False, False, True, False]
    assert (best.best, best.best_update, best.without_better) == (-1.0, 40, 1)


@pytest.mark.parametrize("score", [math.nan, -math.inf])
def test_the_first_validation_is_the_best_whatever_its_score(score):
    best, was_best = recorded(score, score)
    assert was_best == [True, False] and best.best_update == 10


def test_a_number_is_better_than_a_score_of_nan():
    best, was_best = recorded(math.nan, -math.inf, -3.0, math.nan, -2.0)
    assert was_best == [True, False, True, False, True]
    assert (best.best, best.best_update, best.without_better) == (-2.0, 50, 0)


def test_training_stops_after_as_many_validations_as_patience_allows():
    best, _ = recorded(1.0, 0.5, 0.5)
    assert best.stops(2) and not best.stops(3)
    assert not best.stops(None)
    assert best.record(2.0, 40) and not best.stops(1)
