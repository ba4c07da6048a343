import io
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from regardant.training.reporting import Reporter, memory


def plain():
    return Console(file=io.StringIO(), width=80)


def events_of(run):
    return [json.loads(line, parse_constant=pytest.fail) for line in (run / "metrics.jsonl").read_text().splitlines()]


def tell(reporter, updates, seconds=0.0):
    """Two seconds and a hundred tokens an update, of ten; a validation of a second after each fifth."""
    for update in updates:
        seconds += 2.0
        reporter.train(
            update=update,
            epoch=1,
            progress=update / 10,
            seconds=seconds,
            targets=100,
            loss=1 / update,
            learning_rate=1e-3,
        )
        if update % 5 == 0:
            seconds += 1.0
            reporter.validation(update=update, seconds=seconds, took=1.0, loss=2 / update, best_bleu=update)
    return seconds


def test_every_event_is_a_line_of_json_at_once(tmp_path):
    with Reporter(tmp_path, console=plain()) as reporter:
        tell(reporter, range(1, 6))
        events = events_of(tmp_path)  # before it closes
    assert [event["event"] for event in events] == ["train"] * 5 + ["validation"]
    assert events[1].pop("memory_peak_bytes") >= events[1].pop("memory_bytes") > 2**20
    assert events[1] == {
        "event": "train",
        "update": 2,
        "time": 4.0,
        "epoch": 1,
        "progress": 0.2,
        "loss": 0.5,
        "learning_rate": 1e-3,
        "tokens_per_second": 50.0,
    }
    assert events[5] == {"event": "validation", "update": 5, "time": 11.0, "took": 1.0, "loss": 0.4, "best_bleu": 5}


def test_a_resumed_run_leaves_the_file_of_an_uninterrupted_one(tmp_path):
    with Reporter(tmp_path / "whole", console=plain()) as reporter:
        tell(reporter, range(1, 11))
    with Reporter(tmp_path / "killed", console=plain()) as reporter:
        seconds = tell(reporter, range(1, 6))
        tell(reporter, range(6, 9), seconds)
    with (tmp_path / "killed" / "metrics.jsonl").open("a") as file:
        file.write('{"event": "train", "upd')
    resumed = Reporter(tmp_path / "killed", update=5, seconds=seconds, console=plain())
    with resumed:
        assert [event["update"] for event in events_of(tmp_path / "killed")] == [1, 2, 3, 4, 5, 5]
        tell(resumed, range(6, 11), seconds)
    killed, whole = (
        [event | {"memory_bytes": 0, "memory_peak_bytes": 0} for event in events_of(tmp_path / name)]
        for name in ("killed", "whole")
    )
    assert killed == whole
    assert "best bleu 5" in resumed.console.file.getvalue()  # known from the validations before


def test_a_fresh_run_starts_a_fresh_file(tmp_path):
    with Reporter(tmp_path, console=plain()) as reporter:
        reporter.validation(update=0, seconds=0.0, took=0.0, loss=1.0)
    with Reporter(tmp_path, console=plain()):
        assert events_of(tmp_path) == []


def test_what_is_not_a_number_is_null_in_the_file(tmp_path):
    with Reporter(tmp_path, console=plain()) as reporter:
        reporter.train(update=1, epoch=1, progress=0.1, seconds=1.0, targets=1, loss=float("nan"), gap=float("inf"))
        reporter.validation(update=1, seconds=1.0, took=0.0, best_bleu=float("nan"))
    event = events_of(tmp_path)[0]
    assert (event["loss"], event["gap"]) == (None, None)
    with Reporter(tmp_path, update=1, console=plain()) as reporter:
        tell(reporter, [2])
    assert "best" not in reporter.console.file.getvalue()


def test_tokens_per_second_is_that_of_the_last_window_without_validations(tmp_path):
    with Reporter(tmp_path, console=plain()) as reporter:
        for second in range(1, 41):  # ten tokens a second, then a hundred
            tokens = 10 if second <= 20 else 100
            reporter.train(update=second, epoch=1, progress=second / 100, seconds=second, targets=tokens)
        reporter.validation(update=40, seconds=1000.0, took=960.0)
        reporter.train(update=41, epoch=1, progress=0.41, seconds=1001.0, targets=100)
        reporter.train(update=42, epoch=1, progress=0.42, seconds=1101.0, targets=100)
    speeds = {event["update"]: event["tokens_per_second"] for event in events_of(tmp_path) if event["event"] == "train"}
    assert [speeds[update] for update in (1, 20, 25, 40, 41)] == [10, 10, 55, 100, 100]
    assert speeds[42] == 1.0  # an update longer than the window is measured by itself


def test_off_a_terminal_a_plain_line_comes_now_and_then(tmp_path):
    with Reporter(tmp_path, console=plain()) as reporter:
        tell(reporter, range(1, 10))
    told = reporter.console.file.getvalue()
    assert [line.split(" · ")[:2] for line in told.splitlines()] == [
        ["10.0%", "update 1"],  # after 2 seconds
        ["validation at update 5", "loss 0.4"],
        ["60.0%", "update 6"],  # after 13
        ["90.0%", "update 9"],  # the last is always told
    ]
    assert "\x1b" not in told and "\r" not in told


def test_a_line_says_what_matters_and_how_long_it_still_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(Reporter, "every", 0.0)
    with Reporter(tmp_path, unit="label", console=plain()) as reporter:
        tell(reporter, range(1, 7))
    first, last = reporter.console.file.getvalue().splitlines()[0], reporter.console.file.getvalue().splitlines()[-1]
    assert "left" not in first  # one point makes no speed
    assert "epoch 1 · loss 0.1667 · learning rate 0.001 · labels/s 50 · best bleu 5 · memory " in last
    assert "GiB" in last
    # From update 1 at 2 seconds to update 6 at 13, validation included: 2.2 seconds an update, four to go.
    assert last.endswith("0:00:09 left")


def test_a_resumed_run_reckons_the_time_left_from_its_own_speed(tmp_path, monkeypatch):
    monkeypatch.setattr(Reporter, "every", 0.0)
    with Reporter(tmp_path, update=100, seconds=9000.0, console=plain()) as reporter:
        reporter.train(update=101, epoch=1, progress=0.50, seconds=9001.0, targets=1)
        reporter.train(update=102, epoch=1, progress=0.60, seconds=9011.0, targets=1)
    assert reporter.console.file.getvalue().splitlines()[-1].endswith("0:00:40 left")


def test_on_a_terminal_one_line_lives_and_the_last_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(Reporter, "every", 0.0)
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    with Reporter(tmp_path, console=console) as reporter:
        tell(reporter, range(1, 4))
        reporter.bar.refresh()
        reporter.log("a word [between]")
    told = console.file.getvalue()
    assert "━" in told and "30%" in told and "update 3" in told
    assert "a word [between]" in told
    assert told.count("\n30.0% · update 3") + told.count("\x1b[2K30.0% · update 3") == 1


def test_stdout_stays_clean(tmp_path, capsys):
    with Reporter(tmp_path) as reporter:
        tell(reporter, range(1, 6))
        reporter.log("said")
    out, err = capsys.readouterr()
    assert out == ""
    assert "10.0% · update 1" in err and "said" in err


def test_tensorboard_gets_the_same_numbers(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with Reporter(tmp_path, console=plain()) as reporter:
        tell(reporter, range(1, 9))
    with Reporter(tmp_path, update=5, seconds=11.0, console=plain()) as reporter:
        tell(reporter, range(6, 8), 11.0)
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [scalar.step for scalar in events.Scalars("train/loss")] == [1, 2, 3, 4, 5, 6, 7]
    assert events.Scalars("train/loss")[3].value == 0.25
    assert [scalar.step for scalar in events.Scalars("validation/best_bleu")] == [5]


def test_without_tensorboard_nothing_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with Reporter(tmp_path, console=plain()) as reporter:
        pass
    assert not (tmp_path / "tensorboard").exists()
    assert reporter.console.file.getvalue() == ""


def test_a_process_that_has_ended_holds_no_memory():
    ended = subprocess.Popen(["true"])
    while Path(f"/proc/{ended.pid}/stat").read_text().split()[2] != "Z":
        time.sleep(0.01)
    alone = memory()
    assert memory([ended.pid]).peak == pytest.approx(alone.peak, rel=0.01)  # it may grow by a page
    ended.wait()
    assert memory([ended.pid]).peak == pytest.approx(alone.peak, rel=0.01)


def test_memory_counts_what_is_held():
    before = memory()
    held = bytearray(b"x" * 2**26)
    after = memory()
    assert after.current - before.current > 2**25
    assert after.peak >= after.current
    assert len(held) == 2**26
