"""A server under attack serves others; one that is told to end loses no request: `make bench-serving` in short."""

from pathlib import Path

import pytest

from benchmarks.clients import times
from benchmarks.hostile import besieged, ended_under_load, studio_under_load
from benchmarks.serving import SERVERS, judged

RUN = Path(__file__).parents[2] / "golden" / "format-1" / "encoder_decoder"
TEXTS = ["the old cat sat .", "the dog sees a cat ."]


@pytest.mark.slow
def test_a_server_under_attack_serves_others():
    assert not any(besieged(RUN, TEXTS, 8, 8).values())


@pytest.mark.slow
def test_a_server_that_ends_under_load_loses_no_request_and_starts_again_after_a_kill():
    assert not any(ended_under_load(RUN, TEXTS, 20).values())


@pytest.mark.slow
def test_a_studio_under_load_answers_pages_and_nothing_but_its_promises():
    pages, statuses = studio_under_load(RUN, 6, 20)
    assert pages and set(statuses) <= {"200", "429"} and statuses["200"]


def test_every_trial_has_a_bar():
    one = {"answers_per_second": 3.0, "second_gib": 1.0, "last_gib": 1.0, "statuses": {"200": 9}}
    found = {
        name: one | {"page": times([0.01, 0.02]), "answers_per_second": 3.0 if "32" in name else 1.0}
        for name in SERVERS
    }
    studio = {"page": times([0.01, 0.2]), "statuses": {"200": 1, "500": 1}}
    bars = judged(found, studio, {"slow-loris": ["a connection stayed open"], "keys": []})
    missed = [one["bar"] for one in bars if not one["pass"]]
    assert missed == [
        "statuses other than 200, 429, 503",
        "p99 of a page of the studio under load in s",
        "faults in the trial: slow-loris",
    ]
