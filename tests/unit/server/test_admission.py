"""Who is answered: this machine by its names, others by the API key."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from regardant.errors import ConfigError
from regardant.server.admission import Access, read_key
from regardant.server.app import make_app
from regardant.server.bodies import SENTENCE
from tests.unit.server.conftest import LIMITS

KEY = "0123456789abcdef"
GUARDED = ("/v1/runs", "/metrics", "/openapi.json", "/nothing")


@pytest.fixture(scope="module")
def keyed(shared_service):
    """A client of a server that other machines reach."""
    return TestClient(make_app(shared_service, Access(KEY.encode(), False)), base_url="http://example.org")


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize(
    "header",
    [
        {},
        {"authorization": f"Bearer {KEY}0"},
        {"authorization": f"Basic {KEY}"},
        {"authorization": "Bearer é"},
        {"x-api-key": KEY},
    ],
)
def test_without_the_key_nothing_is_answered(keyed, path, header):
    answer = keyed.get(path, headers={name: value.encode("latin-1") for name, value in header.items()})
    assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
    assert answer.json() == {"error": "the API key is missing or wrong: send the header `Authorization: Bearer KEY`"}


def test_the_key_opens_all_and_probes_need_none(keyed):
    headers = {"authorization": f"Bearer {KEY}"}
    assert keyed.get("/v1/runs", headers=headers).status_code == 200
    assert keyed.get("/metrics", headers=headers).status_code == 200
    assert keyed.get("/health").status_code == keyed.get("/ready").status_code == 200


def test_a_key_s_comparison_takes_the_same_time_for_all(keyed, monkeypatch):
    compared = []
    monkeypatch.setattr("hmac.compare_digest", lambda *both: compared.append(both) or False)
    assert keyed.get("/v1/runs", headers={"authorization": f"Bearer {KEY}"}).status_code == 401
    assert compared == [(KEY.encode(), KEY.encode())]


def test_a_loopback_address_answers_to_its_own_names(client):
    for host in ("evil.example:8000", "localhost:81", "192.168.0.7:8000", ""):
        answer = client.get("/v1/runs", headers={"host": host})
        assert answer.status_code == 400 and "use localhost or its address, with its port" in answer.json()["error"]
    assert client.get("/v1/runs", headers={"host": "127.0.0.1:8000"}).status_code == 200


def test_a_page_of_another_site_may_not_ask(client):
    body = {"run": "demo", "texts": [SENTENCE]}
    assert client.post("/v1/translate", json=body, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    headers = client.get("/v1/runs", headers={"origin": "http://evil.example"}).headers
    assert not any(name.startswith("access-control") for name in headers)
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


def test_a_draining_server_takes_no_new_work(serving, client_of):
    service = serving("demo")
    client = client_of(service)
    assert client.get("/ready").status_code == 200
    service.is_draining = True
    answer = client.post("/v1/translate", json={"texts": [SENTENCE]})
    assert answer.status_code == 503 and answer.headers["retry-after"] == "5"
    assert "the server is shutting down" in answer.json()["error"]
    assert client.get("/ready").status_code == 503
    assert client.get("/health").status_code == client.get("/metrics").status_code == 200


def test_an_address_that_asks_too_fast_is_told_to_wait(serving, client_of, monkeypatch):
    clock = SimpleNamespace(now=1e9, time=lambda: clock.now)
    monkeypatch.setattr("limits.storage.memory.time", clock)
    client = client_of(serving("demo", limits=replace(LIMITS, max_rate=3)))
    answers = [client.get("/v1/runs") for _ in range(5)]
    assert [one.status_code for one in answers] == [200, 200, 200, 429, 429]
    assert answers[-1].headers["retry-after"] == "1"
    assert answers[-1].json()["error"] == "more than 3 requests in a second came from one address: send fewer"
    assert client.get("/health").status_code == 200
    clock.now += 1.1
    assert client.get("/v1/runs").status_code == 200


def test_guesses_of_the_key_are_counted_too(serving):
    service = serving("demo", limits=replace(LIMITS, max_rate=2))
    guesser = TestClient(make_app(service, Access(KEY.encode(), False)), base_url="http://example.org")
    assert [guesser.get("/v1/runs").status_code for _ in range(3)] == [401, 401, 429]


def test_a_server_without_a_worker_is_not_healthy(serving, client_of):
    service = serving("demo")
    service.close()
    answers = [client_of(service).get(path) for path in ("/health", "/ready")]
    assert [one.status_code for one in answers] == [503, 503]
    assert answers[0].json() == {"error": "a worker has ended: start the server again"}


def test_the_key_is_read_from_a_file_or_the_environment(tmp_path, monkeypatch):
    (tmp_path / "key").write_text(f"{KEY}\n")
    monkeypatch.setenv("REGARDANT_API_KEY", "of-the-environment")
    assert read_key(tmp_path / "key", is_loopback=True) == KEY.encode()
    assert read_key(None, is_loopback=False) == b"of-the-environment"
    monkeypatch.delenv("REGARDANT_API_KEY")
    assert read_key(None, is_loopback=True) is None


def test_a_key_is_needed_where_others_can_ask(monkeypatch):
    monkeypatch.delenv("REGARDANT_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="other machines can reach this --host, so an API key is needed: set"):
        read_key(None, is_loopback=False)


@pytest.mark.parametrize("key", ["", "short", "a key with spaces in it", "0123456789abcdeé"])
def test_a_key_that_can_be_guessed_or_sent_wrongly_is_refused(tmp_path, key):
    (tmp_path / "key").write_text(key, encoding="utf-8")
    with pytest.raises(ConfigError, match="give at least 16, printable ASCII without spaces, such as `openssl rand"):
        read_key(tmp_path / "key", is_loopback=True)


def test_a_key_file_that_is_missing_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"--api-key-file .*none cannot be read .*: give a file with the key"):
        read_key(tmp_path / "none", is_loopback=True)
