"""Times of steps that runs share, and what they are shared for."""

import json
import os
from pathlib import Path

import pytest
import torch

from regardant import run
from regardant.planning import step_times
from regardant.planning.step_times import VARIABLE, StepTimes

TWO = {"float32/matmul": 0.02, "float32/sdpa": 0.03}
MEASURED = ("training.precision=auto", "training.attention_kernel=auto", "training.processes=1")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """The folder of the times, on a machine that is idle."""
    monkeypatch.setattr("regardant.planning.plan.Waiting.share", lambda self: 0.0)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all jobs: the text is the same."""
    return tmp_path_factory.mktemp("jobs")


@pytest.fixture
def planned(folder, tiny_config):
    """Plan TINY with fields set. Return its job, decisions and the lines that were logged."""

    def make(*overrides):
        lines = []
        prepared, decisions, _ = run.plan(tiny_config(*overrides), folder, lines.append)
        return prepared.job, decisions, lines

    return make


def no_log(line):
    pytest.fail(line)


def files(cache):
    return sorted(cache.rglob("*.json"))


def test_a_second_run_of_the_same_shapes_times_nothing(planned, cache, monkeypatch):
    _, first, lines = planned(*MEASURED)
    assert first.seconds and not [line for line in lines if "earlier run" in line]
    (path,) = files(cache)
    assert json.loads(path.read_text())["seconds"] == first.seconds
    monkeypatch.setattr(step_times, "write_atomically", lambda *given: pytest.fail("written again"))
    monkeypatch.setattr("regardant.planning.probes.Steps._seconds_of", lambda *given: pytest.fail("timed again"))
    _, again, lines = planned(*MEASURED, "training.max_updates=7", "training.schedule.learning_rate=1e-3")
    assert again == first
    assert [line for line in lines if str(path) in line and "earlier run" in line]


@pytest.mark.parametrize(
    "override", ["model.d_ff=96", "model.dropout=0.1", "training.batch_tokens=1600", "model.positions.kind=rotary"]
)
def test_times_of_other_shapes_are_not_taken(planned, override):
    job, _, _ = planned()
    StepTimes.of(job).keep(TWO, no_log)
    assert StepTimes.of(job).seconds == TWO
    assert StepTimes.of(planned(override)[0]).seconds == {}


def test_batches_whose_sizes_differ_by_little_count_as_equal():
    batches = [{"source": torch.zeros(181, rows), "count": rows} for rows in (22, 23, 32)]
    first, second, third = map(step_times._sizes, batches)
    assert first == second != third


def test_times_of_another_number_of_threads_or_release_are_not_taken(planned, monkeypatch):
    job, _, _ = planned()
    StepTimes.of(job).keep(TWO, no_log)
    with monkeypatch.context() as other:
        other.setattr(torch, "get_num_threads", lambda: 7)
        assert StepTimes.of(job).seconds == {}
    with monkeypatch.context() as other:
        other.setattr(step_times, "version", lambda name: "0.0.9")
        assert StepTimes.of(job).seconds == {}
    monkeypatch.setattr(step_times, "PROCESSORS", Path(os.devnull))
    assert StepTimes.of(job).seconds == {}


def test_further_candidates_join_those_that_were_timed(planned):
    job, _, _ = planned()
    StepTimes.of(job).keep(TWO, no_log)
    StepTimes.of(job).keep({"bfloat16/sdpa": 0.01}, no_log)
    assert StepTimes.of(job).seconds == {**TWO, "bfloat16/sdpa": 0.01}


@pytest.mark.parametrize("content", ["", "{", '{"measured_for": {}, "seconds": {"float32/sdpa": 0}}', "[]", "\0"])
def test_a_damaged_file_is_written_anew(planned, cache, content):
    job, _, _ = planned()
    StepTimes.of(job).keep(TWO, no_log)
    (path,) = files(cache)
    path.write_text(content)
    assert StepTimes.of(job).seconds == {}
    StepTimes.of(job).keep(TWO, no_log)
    assert StepTimes.of(job).seconds == TWO


def test_times_of_a_busy_machine_are_not_kept(planned, cache, monkeypatch):
    monkeypatch.setattr("regardant.planning.plan.Waiting.share", lambda self: 0.9)
    assert planned(*MEASURED)[1].seconds
    assert files(cache) == []


def test_times_that_are_reused_on_a_busy_machine_are_named(planned, cache, monkeypatch):
    _, first, _ = planned(*MEASURED)
    (path,) = files(cache)
    monkeypatch.setattr("regardant.planning.plan.Waiting.share", lambda self: 0.9)
    _, again, lines = planned(*MEASURED)
    assert again == first and len([line for line in lines if str(path) in line and "earlier run" in line]) == 1


def test_times_of_first_steps_are_not_kept(planned, cache, monkeypatch):
    """Loading of code and first touches of memory fall on them, so they would decide for all later runs by chance."""
    with monkeypatch.context() as short:
        short.setattr("regardant.planning.plan.time_to_measure", lambda training: 0.0)
        assert planned(*MEASURED)[1].seconds
    assert files(cache) == []
    _, decisions, _ = planned(*MEASURED)
    (path,) = files(cache)
    assert json.loads(path.read_text())["seconds"] == decisions.seconds


def test_a_folder_that_cannot_be_written_is_one_line(planned, cache):
    cache.write_text("a file")
    _, decisions, lines = planned(*MEASURED)
    (told,) = [line for line in lines if "not kept" in line]
    assert decisions.seconds and str(cache) in told and "\n" not in told


def test_an_empty_variable_keeps_nothing(planned, cache, monkeypatch):
    monkeypatch.setenv(VARIABLE, "")
    assert planned(*MEASURED)[1].seconds
    job, _, _ = planned()
    assert StepTimes.of(job) == StepTimes(None, {}, {})


def test_without_the_variable_the_folder_is_the_users_cache(planned, monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert StepTimes.of(planned()[0]).path.parent == tmp_path / "regardant" / "steps"
