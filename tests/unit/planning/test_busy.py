"""A machine on which other programs compute is noticed before its speed is believed."""

import os
import subprocess
import sys
import time

import pytest

from regardant.planning import busy
from regardant.planning.busy import Reading, Waiting, read_scheduled


@pytest.mark.parametrize(("ran", "waited", "noted"), [(7, 2, False), (2, 1, True), (0, 0, False)])
def test_a_third_of_waiting_is_noted(monkeypatch, tmp_path, ran, waited, noted):
    kept = tmp_path / "schedstat"
    kept.write_text(f"{100 + ran} {50 + waited} 9\n", encoding="ascii")
    monkeypatch.setattr(busy, "SCHEDULED", kept)
    note = Waiting(Reading(100, 50)).note(in_minutes=True)
    assert (note is not None) == noted
    if noted:
        assert "this machine is busy: measuring waited for a core 33% of the time" in note
        assert note.endswith(
            "so too few updates are planned; wait until other programs end, or set training.max_updates"
        )
        assert Waiting(Reading(100, 50)).note(in_minutes=False).endswith("so the expected time is too long")


@pytest.mark.parametrize("content", [None, "", "1 2"])
def test_a_system_that_keeps_no_times_is_never_busy(monkeypatch, tmp_path, content):
    kept = tmp_path / "schedstat"
    if content is not None:
        kept.write_text(content, encoding="ascii")
    monkeypatch.setattr(busy, "SCHEDULED", kept)
    assert Waiting().note(in_minutes=True) is None and Waiting(Reading(1, 1)).share() == 0.0


@pytest.mark.skipif(read_scheduled() is None, reason="this system keeps no times of waiting")
def test_programs_that_compute_beside_this_one_are_seen():
    program = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(program) for _ in range(2 * len(os.sched_getaffinity(0)))]
    try:
        waiting, start = Waiting(), time.perf_counter()
        while time.perf_counter() < start + 1.5:
            pass
        assert waiting.note(in_minutes=True) is not None
    finally:
        for one in others:
            one.kill()
            one.wait()
