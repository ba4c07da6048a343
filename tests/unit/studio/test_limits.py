"""Requests are held to limits before any work is done for them."""

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from threading import Event

import pytest
from fastapi.testclient import TestClient

from regardant.studio import attention_routes
from regardant.studio.app import LARGEST_BODY, make_app
from regardant.studio.open_runs import LIMITS

AT = "http://localhost:8421"


def test_a_text_longer_than_the_model_is_refused_before_it_is_translated(ask, monkeypatch, trained):
    def search(*arguments):
        raise AssertionError("the search began")

    monkeypatch.setattr("regardant.generation.search.ModelSearcher.search", search)
    told = ask("look", status=422, text="\N{GRINNING FACE} " * 2000)["detail"]
    assert "tokens, the model takes 48: shorten it" in told


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("look", {"off": [{"attention": "x", "head": 0}] * 1001}, "off: at most 1000 entries"),
        ("look", {"text": "x" * 4001}, "text: at most 4000 characters"),
        ("look", {"beam_size": 10**22}, "beam_size"),
        ("lab/search", {"lines": ["x" * 2000] * 101, "query": "x"}, "200,000 characters together: remove some"),
        ("lab/search", {"lines": ["x"] * 5001, "query": "x"}, "lines: at most 5000 entries"),
    ],
)
def test_what_is_too_much_is_one_line(ask, path, body, told):
    assert told in ask(path, status=422, **body)["detail"]


@pytest.mark.parametrize(
    ("after", "told"),
    [(-1, "at least 0"), (2**63, f"below {2**63}"), (10**30, f"below {2**63}"), ("x", "a number is needed")],
)
def test_events_after_no_place_are_refused(studio, after, told):
    client, name = studio
    answer = client.get("/api/events", params={"run": name, "after": after})
    assert answer.status_code == 422 and answer.json()["detail"] == f"after: {told}"


def test_a_request_without_a_body_is_named(studio):
    client, _ = studio
    answer = client.post("/api/look")
    assert answer.json() == {"detail": "the request: missing"}


def test_a_large_body_is_refused_unread(studio):
    client, _ = studio
    answer = client.post("/api/look", content=b"x" * (LARGEST_BODY + 1))
    assert answer.status_code == 413
    assert answer.json() == {"detail": "the body has more than 17,825,792 bytes: send less at once"}


def test_a_large_body_of_unknown_length_is_refused_when_it_becomes_too_large(studio):
    client, _ = studio
    sent = []

    def blocks():
        for _ in range(40):
            sent.append(1)
            yield b"x" * 2**20

    assert client.post("/api/look", content=blocks()).status_code == 413


def test_the_studio_refuses_whom_it_would_let_wait_for_long(trained, monkeypatch):
    """Pages that need no model are answered meanwhile, and those who wait afterwards."""
    begun, leave = Event(), Event()

    def look_at(*asked):
        begun.set()
        assert leave.wait(20)
        return {}

    monkeypatch.setattr(attention_routes, "look_at", look_at)
    client = TestClient(make_app([trained().folder]), base_url=AT, raise_server_exceptions=False)
    asked = {"run": trained().folder.as_posix(), "text": "a cat"}
    with ThreadPoolExecutor(LIMITS.max_queue + 2) as pool:
        first = pool.submit(client.post, "/api/look", json=asked)
        try:
            assert begun.wait(20)
            others = [pool.submit(client.post, "/api/look", json=asked) for _ in range(LIMITS.max_queue + 1)]
            (refused,) = wait(others, return_when=FIRST_COMPLETED).done
            assert client.get("/look").status_code == 200
        finally:
            leave.set()
    assert refused.result().status_code == 429
    assert refused.result().json()["detail"].startswith("8 items are waiting for the studio, allowed are 8: try again")
    assert [one.result().status_code for one in (first, *others)].count(200) == LIMITS.max_queue + 1
