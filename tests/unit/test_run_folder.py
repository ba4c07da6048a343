"""One process trains into a run folder at a time, seen with processes of their own."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from regardant.config import dump
from regardant.errors import RunError
from regardant.run.folder import LOCK, UNFINISHED, locked, named_full_disk


@pytest.fixture
def command(tiny_text_config, tmp_path):
    """`regardant train` without an end, into the folder `run`."""
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(dump(tiny_text_config("training.max_updates=1000000")), encoding="utf-8")
    return [sys.executable, "-m", "regardant", "train", str(recipe), "--out", str(tmp_path / "run")]


@contextmanager
def training(command, folder):
    """A process that trains, from its first line of metrics on."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as process:
        try:
            end = time.monotonic() + 90
            events = folder / "metrics.jsonl"
            while not (events.is_file() and events.stat().st_size):
                assert process.poll() is None, process.stderr.read().decode()
                assert time.monotonic() < end
                time.sleep(0.1)
            yield process
        finally:
            process.kill()


def contents(folder):
    """What a start would delete or write anew."""
    paths = [folder / "run.yaml", folder / "tokenizer.json", *sorted((folder / "data").rglob("*"))]
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths if path.is_file()}


def test_a_second_training_is_refused_in_a_line_that_names_the_first(command, tmp_path):
    folder = tmp_path / "run"
    with training(command, folder) as first:
        before = contents(folder)
        second = subprocess.run(command, capture_output=True, text=True, timeout=90)
        assert second.returncode == 2
        assert second.stderr == (
            f"regardant: {folder} is in use: process {first.pid} is training into it; "
            "wait for it, stop it, or give another --out\n"
        )
        assert contents(folder) == before and len(before) > 3
        assert first.poll() is None
        first.send_signal(signal.SIGINT)
        assert first.wait(60) == 130


def test_a_training_that_was_killed_leaves_no_lock(command, tmp_path):
    folder = tmp_path / "run"
    with training(command, folder) as process:
        process.kill()
        process.wait()
    assert (folder / LOCK).read_text().strip() == str(process.pid)
    with locked(folder):
        assert (folder / LOCK).read_text().strip() == str(os.getpid())


def test_a_start_leaves_the_data_of_another_start_alone(command, tmp_path):
    """The first one has not come to its run.yaml, and a start anew would delete its data."""
    folder = tmp_path / "run"
    with locked(folder):
        (folder / UNFINISHED).touch()
        (folder / "data").mkdir()
        (folder / "data" / "text").write_text("mine", encoding="utf-8")
        second = subprocess.run(command, capture_output=True, text=True, timeout=90)
        assert (second.returncode, f"process {os.getpid()} is training" in second.stderr) == (2, True)
        assert (folder / "data" / "text").read_text(encoding="utf-8") == "mine"


def test_a_lock_is_free_again_when_training_fails(tmp_path):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), locked(tmp_path / "run"):
            raise ZeroDivisionError


def test_a_lock_leaves_no_file_behind_but_after_a_kill(tmp_path):
    with locked(tmp_path):
        assert (tmp_path / LOCK).read_text(encoding="ascii") == str(os.getpid())
    assert not list(tmp_path.iterdir())
    (tmp_path / LOCK).write_text("1", encoding="ascii")  # of a process that was killed
    with locked(tmp_path):
        assert (tmp_path / LOCK).read_text(encoding="ascii") == str(os.getpid())


def test_a_lock_file_that_its_holder_removes_meanwhile_is_made_again(tmp_path, monkeypatch):
    """Else two processes would hold locks of two files, one of them removed."""
    flock, opened = fcntl.flock, []

    def remove_first(descriptor, operation):
        if not opened:
            (tmp_path / LOCK).unlink()
        opened.append(descriptor)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with locked(tmp_path):
        assert len(opened) == 2
        with pytest.raises(RunError, match=f"process {os.getpid()} is training"), locked(tmp_path):
            pass


def test_a_holder_that_has_not_signed_yet_is_another_process(tmp_path):
    with locked(tmp_path):
        (tmp_path / LOCK).write_bytes(b"")
        with pytest.raises(RunError, match="in use: another process is training into it"), locked(tmp_path):
            pass


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with (
        pytest.raises(RunError, match=r"cannot be written .*: give another --out"),
        locked(tmp_path / "file" / "a"),
    ):
        pass


def test_a_full_disk_is_told_with_the_folder_it_was_to_hold(tmp_path):
    told = r"cannot write .*run \(No space left on device\); is the disk full or read-only\?"
    with (
        pytest.raises(RunError, match=told),
        named_full_disk(tmp_path / "run"),
        open("/dev/full", "wb", buffering=0) as full,
    ):
        full.write(b"x")
    with pytest.raises(FileNotFoundError), named_full_disk(tmp_path / "run"):
        (tmp_path / "nothing").read_bytes()
