"""Commands are timed, and seen to wait for a core."""

import os
import subprocess
import sys

import pytest

from benchmarks import watched
from benchmarks.watched import memory_of, run_watched, status_of, waited_share


def test_a_command_is_timed_and_watched_until_it_ends(monkeypatch):
    monkeypatch.setattr(watched, "POLL_SECONDS", 0.02)
    shares = iter([0.1, 0.2, 0.3])
    monkeypatch.setattr(watched, "waited_share", lambda process, unknown: next(shares, unknown))
    seconds, share = run_watched([sys.executable, "-c", "import time; time.sleep(0.3)"])
    assert seconds >= 0.3 and share == 0.3


def test_a_command_that_fails_is_an_error():
    with pytest.raises(subprocess.CalledProcessError, match="exit status 3"):
        run_watched([sys.executable, "-c", "raise SystemExit(3)"])


def test_the_share_is_read_from_the_scheduler(monkeypatch):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert 0 <= waited_share(process.pid) <= 1
    finally:
        process.communicate(b"\n")
    assert waited_share(process.pid, 0.25) == 0.25
    monkeypatch.setattr(watched.Path, "read_text", lambda path, encoding: "300 100 7\n")
    assert waited_share(process.pid) == 0.25


def test_memory_is_that_of_a_process_until_it_ends():
    assert 0 < memory_of(field="RssAnon") < memory_of() <= memory_of(field="VmHWM") < 2**40
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert memory_of(process.pid) > 0 and status_of(process.pid, "PPid") == os.getpid()
        process.communicate(b"\n")
    assert memory_of(process.pid) is None
