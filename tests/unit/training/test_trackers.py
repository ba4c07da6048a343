"""Programs that follow a training: one of a plugin is written the same numbers as the file."""

import io
import json
import sys
from typing import ClassVar

import pytest
from rich.console import Console

from regardant.errors import ConfigError
from regardant.training.reporting import Reporter
from regardant.training.trackers import DEFAULT, Tracker, open_trackers


@pytest.fixture
def notebook():
    """A tracker that keeps what it is given."""

    class Notebook(Tracker):
        name = "notebook"
        kept: ClassVar[list] = []

        def __init__(self, run, update):
            self.kept.append(("begin", run.name, update))

        def write(self, numbers, update):
            self.kept.append((update, dict(numbers)))

        def close(self):
            self.kept.append("end")

    yield Notebook
    del Tracker.known["notebook"]


def test_a_tracker_is_given_every_number(notebook, tmp_path):
    console = Console(file=io.StringIO(), width=80)
    with Reporter(tmp_path, update=3, console=console, trackers=["notebook"]) as reporter:
        reporter.train(update=4, epoch=1, progress=0.5, seconds=2.0, targets=10, loss=0.25)
        reporter.validation(update=4, seconds=3.0, took=1.0, accuracy=0.5)
    begin, train, validation, end = notebook.kept
    assert begin == ("begin", tmp_path.name, 3) and end == "end"
    assert train[0] == 4 and train[1]["train/loss"] == 0.25 and train[1]["train/tokens_per_second"] > 0
    assert validation == (4, {"validation/took": 1.0, "validation/accuracy": 0.5})
    assert not (tmp_path / "tensorboard").exists()
    assert [json.loads(line)["event"] for line in (tmp_path / "metrics.jsonl").read_text("utf-8").splitlines()] == [
        "train",
        "validation",
    ]


def test_an_unknown_tracker_and_one_that_is_not_installed_are_one_line(tmp_path):
    with pytest.raises(
        ConfigError, match=r"training\.trackers: given 'tensorbord'; allowed: tensorboard.*did you mean"
    ):
        open_trackers(["tensorbord"], tmp_path, 0)

    class Absent(Tracker):
        name = "absent"

        def __init__(self, run, update):
            import a_program_that_is_not_there  # noqa: F401

    try:
        with pytest.raises(ConfigError, match="absent needs a_program_that_is_not_there: install it"):
            open_trackers(["absent"], tmp_path, 0)
    finally:
        del Tracker.known["absent"]


def test_a_tracker_that_is_not_installed_is_left_out_only_of_runs_that_name_no_others(notebook, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # its import fails
    assert open_trackers(DEFAULT, tmp_path, 0) == []
    with pytest.raises(ConfigError, match=r"tensorboard needs torch\.utils\.tensorboard: install it"):
        open_trackers(["notebook", "tensorboard"], tmp_path, 0)
