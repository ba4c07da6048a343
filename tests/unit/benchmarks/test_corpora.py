"""Memory of a stream, and the actor that is killed, of the benchmark of corpora."""

import os
import signal
import subprocess
import time

import pytest

from benchmarks import corpora


def test_a_tenth_without_a_reading_has_no_memory():
    readings = [(0.05, 7), (0.15, 8), (0.151, 9), (0.55, None), (1.0, 10)]
    assert corpora.largest_of_tenths(readings) == [7, 9, *[None] * 7, 10]


@pytest.mark.parametrize(("last", "value", "met"), [(103, 1.03, True), (103.02, 1.0302, False), (None, None, None)])
def test_memory_that_was_not_read_is_not_measured(last, value, met):
    stream = {
        "memory_of_tenths": [90, 100, *[100] * 7, last],
        "seconds_to_first_batch": 1.0,
        "target_tokens_per_second": 6.0,
        "training_target_tokens_per_second": 1.0,
        "wrong_rows": 0,
    }
    translated = {"seconds": {"plain command": 1.0, "two actors, one killed": 1.0}, "in_order": True}
    memory, *others = corpora.judged(stream, {"wrong_rows": 0}, translated)
    assert (memory["value"], memory["pass"]) == (value, met)
    assert len(others) == 6 and all(one["pass"] for one in others)


def test_only_actors_of_the_program_are_found():
    actor = "sh -c 'kill -STOP $$' $NAME & wait"  # waits without a child, which would begin with the same arguments
    options = {"env": os.environ | {"NAME": "ray::MapWorker"}, "start_new_session": True}
    ours, other = (subprocess.Popen(["sh", "-c", actor], **options) for _ in range(2))
    try:
        end = time.monotonic() + 10
        while not (corpora.actors(ours.pid) and corpora.actors(other.pid)) and time.monotonic() < end:
            time.sleep(0.01)
        (found,), (foreign,) = corpora.actors(ours.pid), corpora.actors(other.pid)
        assert (
            found != foreign and corpora.is_started_by(ours.pid, found) and not corpora.is_started_by(other.pid, found)
        )
    finally:
        for one in (ours, other):
            os.killpg(one.pid, signal.SIGKILL)
            one.wait()
