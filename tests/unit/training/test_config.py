import pytest

from regardant.training.config import TRAINING_SHARE, FirstRun, TrainingConfig
from regardant.training.optimizers import MuonConfig

FIRST = FirstRun(epochs=40, least_updates=3000, least_minutes=1.0, most_minutes=50.0)


def test_minutes_that_are_given_or_not_wanted_stay():
    for minutes, updates in ((5, None), (None, 100)):
        training = TrainingConfig(max_minutes=minutes, max_updates=updates)
        assert training.with_minutes(FIRST, 10**6, 1000).max_minutes == minutes


@pytest.mark.parametrize("bound", [{"max_updates": 7}, {"max_epochs": 7}])
def test_auto_minutes_bound_nothing_beside_another_end(bound):
    chosen = TrainingConfig(max_minutes="auto", **bound).with_minutes(FIRST, 10**9, 1.0)
    assert chosen.max_minutes is None and {name: getattr(chosen, name) for name in bound} == bound


def test_auto_minutes_are_those_of_enough_epochs_at_the_measured_speed():
    training = TrainingConfig(max_minutes="auto", batch_tokens=4000)
    chosen = training.with_minutes(FIRST, 400_000, 20_000)
    rounding = 0.05  # to a tenth of a minute
    assert chosen.max_minutes == pytest.approx(40 * 400_000 / 20_000 / 60 / TRAINING_SHARE, abs=rounding)
    small = training.with_minutes(FIRST, 10_000, 20_000)
    assert small.max_minutes == pytest.approx(3000 * 4000 / 20_000 / 60 / TRAINING_SHARE, abs=rounding)


@pytest.mark.parametrize(("targets_per_epoch", "per_update"), [(20_000, 12_000), (10_000, 10_000)])
def test_auto_minutes_are_enough_for_updates_of_accumulated_batches(targets_per_epoch, per_update):
    training = TrainingConfig(max_minutes="auto", batch_tokens=4000, accumulate=3)
    minutes = training.with_minutes(FIRST, targets_per_epoch, 20_000).max_minutes
    assert minutes == pytest.approx(3000 * per_update / 20_000 / 60 / TRAINING_SHARE, abs=0.05)


@pytest.mark.parametrize(("targets_per_second", "expected"), [(1.0, 50.0), (1e9, 1.0)])
def test_auto_minutes_stay_within_their_bounds(targets_per_second, expected):
    chosen = TrainingConfig(max_minutes="auto").with_minutes(FIRST, 10**6, targets_per_second)
    assert chosen.max_minutes == expected


def test_a_section_built_without_its_kind_keeps_it_where_fields_are_replaced():
    given = TrainingConfig(max_updates=2, optimizer=MuonConfig(momentum=0.9), **{"from": "runs/a"})
    replaced = given.replaced(max_updates=3)
    assert replaced == given.model_copy(update={"max_updates": 3})
    assert replaced.model_fields_set == given.model_fields_set
