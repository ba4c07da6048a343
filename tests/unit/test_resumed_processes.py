"""The number of processes of a resumed run, whoever started the processes of its first part."""

from contextlib import nullcontext

import pytest
import torch

from regardant import run
from regardant.errors import ConfigError
from regardant.run import Record, training
from regardant.tasks.base import TaskJob
from regardant.training.cursor import Cursor, Outcome
from regardant.training.metrics import Metric
from regardant.training.processes import Group
from tests.runs import change_record

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def silent(line):
    pass


@pytest.fixture
def fitted(monkeypatch):
    """Train nothing. Return the list of the groups and records that trainings were given."""
    found = []

    def fit(prepared, record, folder, group):
        found.append((group, record))
        return Outcome(Cursor(), True, 0, Metric("loss", higher_is_better=False))

    monkeypatch.setattr(training, "_fit", fit)
    return found


@pytest.fixture
def by_torchrun(monkeypatch):
    """Train as rank 0 of a number of processes that torchrun has started."""

    def train(config, folder, count):
        with monkeypatch.context() as launched:
            launched.setattr(training, "launched_rank", lambda: 0)
            launched.setattr(training, "joined", lambda: nullcontext(Group(0, count)))
            run.train(config, folder, silent)

    return train


def test_a_run_that_torchrun_began_is_resumed_in_one_process(configure, tmp_path, fitted, by_torchrun):
    folder = tmp_path / "run"
    by_torchrun(configure(), folder, 2)
    record = Record.read(folder)
    assert record.decided.processes == 2
    assert record.asked == configure(), "the number of processes was left open"
    by_torchrun(configure(), folder, 3)
    assert Record.read(folder).decided.processes == 3
    run.train(configure(), folder, silent)
    assert Record.read(folder).decided.processes == 1
    by_torchrun(configure(), folder, 2)
    run.train(configure(), folder, silent)
    assert [record.decided.processes for _, record in fitted] == [2, 3, 1, 2, 1]
    assert [group is None for group, _ in fitted] == [False, False, True, False, True]


def test_a_number_that_is_asked_for_counts_however_the_run_began(configure, tmp_path, fitted, by_torchrun):
    by_torchrun(configure("training.processes=2"), tmp_path / "run", 2)
    run.train(configure("training.processes=2"), tmp_path / "run", silent)
    assert [record.decided.processes for _, record in fitted] == [2, 2]
    with pytest.raises(ConfigError, match=r"given 2, and torchrun has started 3: leave it out"):
        by_torchrun(configure("training.processes=2"), tmp_path / "run", 3)


def test_processes_that_were_measured_faster_are_started_again(own_run, configure, fitted):
    change_record(own_run, lambda content: content["decided"].update(processes=2))
    run.train(configure(), own_run, silent)
    assert [record.decided.processes for _, record in fitted] == [2]


def test_on_an_accelerator_a_run_is_resumed_in_one_process_and_several_are_refused(own_run, configure):
    change_record(own_run, lambda content: content["decided"].update(processes=2))
    record = Record.read(own_run)
    asked = [configure(f"training.processes={count}").training for count in ("auto", 1, 2)]
    assert [training.resumed_processes(record, one, CPU) for one in asked] == [2, 1, 2]
    assert [training.resumed_processes(record, one, CUDA) for one in asked[:2]] == [1, 1]
    with pytest.raises(ConfigError, match=r"^training.processes divides the cores of a CPU, .*: leave it out$"):
        training.resumed_processes(record, asked[2], CUDA)


def test_a_number_that_is_refused_is_not_recorded(own_run, configure, by_torchrun, monkeypatch, tmp_path):
    init = TaskJob.__init__

    def indivisible(job, *given, **named):
        init(job, *given, **named)
        job.divisible = False

    monkeypatch.setattr(TaskJob, "__init__", indivisible)
    before = (own_run / "run.yaml").read_bytes()
    with pytest.raises(ConfigError, match=r"^training\.processes: given 2; .* set training\.processes=1$"):
        run.train(configure("training.processes=2"), own_run, silent)
    with pytest.raises(ConfigError, match=r"^training\.processes: given 2; "):
        by_torchrun(configure(), own_run, 2)
    assert (own_run / "run.yaml").read_bytes() == before
    with pytest.raises(ConfigError, match=r"^training\.processes: given 2; "):
        by_torchrun(configure(), tmp_path / "new", 2)
    assert not (tmp_path / "new" / "run.yaml").exists()
