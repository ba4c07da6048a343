import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from regardant.training.schedules import (
    ConstantConfig,
    CosineConfig,
    InverseSqrtConfig,
    LinearConfig,
    NoamConfig,
    ScheduleConfig,
)

SCHEDULES = [
    NoamConfig(d_model=512),
    InverseSqrtConfig(),
    ConstantConfig(),
    CosineConfig(final_ratio=0.1),
    LinearConfig(final_ratio=0.1),
]


def test_noam_of_the_paper_peaks_at_the_published_rate():
    noam = NoamConfig(d_model=512, warmup_steps=4000)
    rates = {update: noam.rate(update, 0.0) for update in range(1, 12_001)}
    assert max(rates, key=rates.get) == 4000
    assert rates[4000] == pytest.approx(6.987712e-4)  # 1 / sqrt(512 * 4000)
    assert rates[1] == pytest.approx(1.746928e-7)
    assert NoamConfig(d_model=512, factor=2.0).rate(77, 0.0) == pytest.approx(2 * rates[77])


def test_noam_is_inverse_sqrt_told_by_its_peak():
    noam = NoamConfig(d_model=256, warmup_steps=100)
    same = InverseSqrtConfig(learning_rate=1 / math.sqrt(256 * 100), warmup_steps=100)
    for update in (1, 50, 100, 101, 400, 100_000):
        assert noam.rate(update, 0.5) == pytest.approx(same.rate(update, 0.5))


def test_inverse_sqrt_halves_at_four_times_the_warmup():
    schedule = InverseSqrtConfig(learning_rate=1e-3, warmup_steps=10)
    assert [schedule.rate(update, 0.0) for update in (5, 10, 40)] == pytest.approx([5e-4, 1e-3, 5e-4])


def test_constant_rises_by_equal_steps_and_stays():
    schedule = ConstantConfig(learning_rate=1.0, warmup_steps=4)
    assert [schedule.rate(update, 0.0) for update in range(1, 7)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert ConstantConfig(learning_rate=1.0, warmup_steps=0).rate(1, 0.0) == 1.0


@pytest.mark.parametrize(
    ("schedule", "quarter"),
    [(CosineConfig, (1 + math.sqrt(0.5)) / 2), (LinearConfig, 0.75)],
)
def test_a_decay_ends_at_its_final_ratio(schedule, quarter):
    decay = schedule(learning_rate=1.0, warmup_steps=0, final_ratio=0.2)
    got = [decay.rate(10, progress) for progress in (0.0, 0.25, 0.5, 1.0)]
    assert got == pytest.approx([1.0, 0.2 + 0.8 * quarter, 0.6, 0.2])
    assert schedule(warmup_steps=0).rate(10, 1.0) == 0.0


@pytest.mark.parametrize(("schedule", "peak"), [(CosineConfig, (1 + math.sqrt(0.5)) / 2), (LinearConfig, 0.75)])
def test_a_decay_runs_during_warm_up_so_the_peak_is_below_the_learning_rate(schedule, peak):
    decay = schedule(learning_rate=1.0, warmup_steps=250)
    rates = {update: decay.rate(update, update / 1000) for update in range(1, 1001)}
    assert max(rates, key=rates.get) == 250 and rates[250] == pytest.approx(peak)


@pytest.mark.parametrize("schedule", [CosineConfig, LinearConfig])
def test_past_the_budget_the_final_rate_stays(schedule):
    decay = schedule(learning_rate=1.0, warmup_steps=0, final_ratio=0.2)
    assert decay.rate(10, 1.3) == pytest.approx(0.2)


@pytest.mark.parametrize("schedule", [CosineConfig, LinearConfig])
def test_a_slow_machine_ends_its_decay_on_time(schedule):
    decay = schedule(warmup_steps=10, final_ratio=0.1)
    assert decay.rate(20, 1.0) == decay.rate(20_000, 1.0)


@given(update=st.integers(1, 10**6), progress=st.floats(0, 1), schedule=st.sampled_from(SCHEDULES))
def test_rates_are_positive_and_never_jump(update, progress, schedule):
    rate, next_update = schedule.rate(update, progress), schedule.rate(update + 1, progress)
    next_progress = schedule.rate(update, min(1.0, progress + 1e-6))
    assert rate > 0
    # Within warm-up the rate grows by a share of 1 / update, later less: no jump is larger than the first step.
    assert abs(next_update - rate) <= rate / update * (1 + 1e-9)
    assert abs(next_progress - rate) <= 1e-4 * rate


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.kind)
def test_update_zero_has_no_rate(schedule):
    with pytest.raises(ValueError, match="count from 1"):
        schedule.rate(0, 0.0)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.kind)
def test_kind_tells_schedules_apart(schedule):
    assert TypeAdapter(ScheduleConfig).validate_python(schedule.model_dump()) == schedule
