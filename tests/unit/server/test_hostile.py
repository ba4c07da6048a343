"""A server under attack serves others; one that is told to end loses no request: `make bench-serving` in short."""

import json
import time
from pathlib import Path

import pytest

from benchmarks.clients import times
from benchmarks.hostile import besieged, ended_under_load, studio_under_load
from benchmarks.serving import SERVERS, judged
from regardant.server.limits import Limits

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


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("translate", {"texts": [1] * 1_300_000}, "texts.0: given 1, input should be a valid string"),
        ("predict", {"items": [1] * 1_300_000}, "items.0.str: given 1"),
        ("score", {"items": ["a"], "targets": [1] * 1_300_000}, "targets.0: given 1"),
        ("translate", {f"{number:x}": 1 for number in range(300_000)}, "'0' is no field of this request"),
        ("translate", {"texts": {"a": ["b" * 1000] * 4000}}, "texts: input should be a valid list"),
    ],
)
def test_a_body_of_mistakes_is_refused_at_the_first(serving, client_of, path, content, said):
    body = json.dumps(content, separators=(",", ":"))
    assert 2_500_000 < len(body) < Limits().body_bytes
    client = client_of(serving("demo", limits=Limits()))
    began = time.perf_counter()
    answer = client.post(f"/v1/{path}", content=body, headers={"content-type": "application/json"})
    assert time.perf_counter() - began < 3, "all else that the server does waits for it"
    assert answer.status_code == 422 and said in answer.json()["error"] and len(answer.content) < 400


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
