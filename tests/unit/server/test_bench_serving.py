"""The clients of `make bench-serving` see what a server answers."""

import asyncio
import os

import pytest

from benchmarks.clients import PARTS, Seen, ask
from regardant.server.bodies import SENTENCE
from regardant.server.limits import Limits


@pytest.mark.parametrize(("limits", "statuses"), [(Limits(), {200}), (Limits(max_characters=3), {422})])
def test_clients_count_answers_and_watch_memory(serving, at_port, limits, statuses):
    port, _ = at_port(serving("demo", limits=limits))
    seen = asyncio.run(ask(port, [SENTENCE, SENTENCE.lower()], 0.4, 3, os.getpid()))
    assert set(seen.statuses) == statuses and seen.memory[0] > 0.01
    assert bool(seen.seconds) is (statuses == {200}) and all(0 < one < 1 for one in seen.seconds)


def test_what_is_kept_follows_from_what_was_seen():
    seen = Seen([number / 100 for number in range(1, 200)], memory=[1.0] * PARTS + [2.0] * 3 * PARTS + [3.0] * PARTS)
    seen.statuses.update({200: 199, 429: 1})
    assert seen.as_dict(10.0) == {
        "answers_per_second": 19.9,
        "p50_seconds": 1.0,
        "p99_seconds": 1.97,
        "statuses": {"200": 199, "429": 1},
        "second_gib": 2.0,
        "last_gib": 3.0,
    }
