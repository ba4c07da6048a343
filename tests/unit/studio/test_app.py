"""Who is answered, what every answer says to the browser, and one line for every mistake."""

import os
import re
import shutil
import socket
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fastapi.testclient import TestClient

from regardant import studio as package
from regardant.errors import OutOfMemory, RunError
from regardant.server.hosts import is_ours
from regardant.server.listening import AnnouncingServer
from regardant.studio.app import LARGEST_BODY, PAGES, make_app
from regardant.studio.catalogue import Catalogue
from regardant.studio.serve import serve

STATIC = Path(package.__file__).parent / "static"
PICTURES = Path(package.__file__).parents[1] / "pictures" / "assets"
IMPORT = re.compile(r'^(?:import|export)\b[^";]* from "([^"]+)"', re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_served_and_loads_only_what_the_studio_serves(studio, page):
    client, _ = studio
    answer = client.get(page)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    links = re.findall(r'(?:src|href)="(/[^"]+)"', answer.text)
    assert links
    for link in links:
        assert client.get(link).status_code == 200, link
    assert "http" not in re.sub(r"<!doctype.*?>", "", answer.text)
    assert not re.search(r"<script(?![^>]* src=)|<style|style=| on\w+=", answer.text)


def test_a_run_in_a_folder_whose_name_is_no_text_is_listed_and_read(trained, tmp_path):
    shutil.copytree(trained().folder, tmp_path / os.fsdecode(b"caf\xe9"))
    client = TestClient(make_app([tmp_path]), base_url="http://localhost")
    (found,) = client.get("/api/runs").json()
    assert found["run"].endswith("/caf\ufffd")
    assert client.get("/api/events", params={"run": found["run"]}).status_code == 200


@pytest.mark.parametrize("module", sorted(STATIC.rglob("*.js")), ids=lambda path: str(path.relative_to(STATIC)))
def test_modules_import_what_is_there(module):
    text = module.read_text(encoding="utf-8")
    imported = IMPORT.findall(text)
    assert len(imported) >= len(re.findall(r"^import\b", text, re.MULTILINE))
    for name in imported:
        path = (module.parent / name).resolve()
        if path.is_relative_to(STATIC / "pictures"):
            path = PICTURES / path.relative_to(STATIC / "pictures")
        assert path.is_file(), name


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("localhost:8421", True),
        ("127.0.0.1:8421", True),
        ("[::1]:8421", True),
        ("LOCALHOST:8421", True),
        ("localhost", False),
        ("localhost:80", False),
        ("evil.example:8421", False),
        ("localhost.evil.example:8421", False),
        ("127.0.0.1.evil.example:8421", False),
        ("localhost@evil.example:8421", False),
        ("evil@localhost:8421", False),
        ("192.168.0.7:8421", False),
        ("127.0.1.1:8421", False),
        ("localhost:x", False),
        ("", False),
    ],
)
def test_only_this_machine_s_names_are_answered(host, ours):
    assert is_ours(host, {"server": ("127.0.0.1", 8421)}) is ours


@pytest.mark.parametrize(
    ("reached", "host", "ours"),
    [
        ("127.0.1.1", "127.0.1.1:8421", True),
        ("127.0.1.1", "localhost:8421", True),
        ("127.0.1.1", "127.0.1.1:80", False),
        ("127.0.1.1", "127.0.1.2:8421", False),
        ("192.168.0.7", "192.168.0.7:8421", False),
        ("evil.example", "evil.example:8421", False),
    ],
)
def test_the_address_that_a_connection_reached_is_answered_if_it_is_a_loopback_address(reached, host, ours):
    assert is_ours(host, {"server": (reached, 8421)}) is ours


def test_a_foreign_name_learns_nothing(studio):
    client, name = studio
    for path in ("/", "/api/runs", "/static/shell.js"):
        answer = client.get(path, headers={"host": "evil.example:8421"})
        assert answer.status_code == 400 and name not in answer.text


def test_another_page_s_script_may_not_post(studio):
    client, name = studio
    body = {"run": name, "text": "x"}
    assert client.post("/api/look", json=body, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.post("/api/look", content="{}", headers={"content-type": "text/plain"}).status_code == 422


@pytest.mark.parametrize("path", ["/", "/runs", "/api/runs", "/api/events?run=no", "/static/shell.js", "/nothing"])
def test_every_answer_has_a_policy_and_none_lets_others_read(studio, path):
    client, _ = studio
    headers = client.get(path, headers={"origin": "http://evil.example"}).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "script-src" not in policy, "the default is the strictest"
    assert ("unsafe-inline" in policy) is (path == "/runs")
    assert headers["x-content-type-options"] == "nosniff"
    assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.parametrize("name", ["no-such-run", "../..", "/etc", ""])
def test_an_unknown_run_is_not_found(studio, name):
    client, _ = studio
    asked = [client.get("/api/events", params={"run": name})]
    body = {"run": name, "text": "x", "view": "beam search"}
    asked += [client.post(f"/api/{path}", json=body) for path in ("look", "view", "steps", "shapes")]
    for answer in asked:
        assert answer.status_code == 404
        assert "choose one listed on the page Runs" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("look", {"text": " "}, "the text is blank"),
        ("view", {"text": "", "view": "beam search"}, "the text is blank"),
        ("view", {"text": "\n", "view": "token by token"}, "the text is blank"),
        ("steps", {"text": " "}, "the text is blank"),
        ("shapes", {"text": " "}, "the text is blank"),
        ("look", {"text": "x" * 5000}, "text: "),
        ("look", {"text": "a " * 200}, "48: shorten it"),
        ("view", {"text": "a " * 200, "view": "beam search"}, "48: shorten it"),
        ("look", {"text": None}, "text: "),
        ("look", {"beam_size": 99}, "beam_size: "),
        ("look", {"off": [{"attention": "decoder.layers.0.cross_attention", "head": 7}]}, "there is no head 7"),
        ("look", {"off": [{"attention": "nowhere", "head": 0}]}, "no place 'nowhere"),
        ("steps", {"attention": "nowhere"}, "no attention 'nowhere'"),
        ("steps", {"head": 9}, "there is no head 9: choose 0 to 1"),
        ("steps", {"query": 99}, "there is no query 99"),
        ("mask", {"length": 0}, "length: "),
        ("mask", {"length": 3, "edges": "0-7"}, "out of range for 3 tokens"),
        ("mask", {"edges": "a-b"}, "'a-b' is not a pair of tokens"),
    ],
)
def test_a_mistake_is_told_in_one_line(ask, path, body, told):
    detail = ask(path, 422, **body)["detail"]
    assert told in detail and "\n" not in detail and "Traceback" not in detail


def test_a_run_without_weights_and_a_damaged_one_are_told_of(tmp_path, trained):
    begun, damaged = tmp_path / "begun", tmp_path / "damaged"
    for folder in (begun, damaged):
        folder.mkdir()
    (begun / "run.yaml").write_bytes((trained().folder / "run.yaml").read_bytes())
    (damaged / "run.yaml").write_text("nonsense: [")
    client = TestClient(make_app([tmp_path]), base_url="http://localhost")
    first, second = client.get("/api/runs").json()
    assert (first["run"], first["trained"], first["update"]) == (begun.as_posix(), False, 0)
    assert "damaged" in second["run"] and "\n" not in second["problem"]
    answer = client.post("/api/look", json={"run": begun.as_posix(), "text": "x"})
    assert answer.status_code == 422 and "train it first" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "memory ran out: "),
        (RuntimeError("CUDA out of memory. Tried to allocate 1 GiB"), "memory ran out: "),
        (OutOfMemory("the model of x does not fit into memory: restore its run.yaml"), "the model of x does not fit"),
    ],
)
def test_memory_that_runs_out_is_told_in_one_line(trained, monkeypatch, error, told):
    def fail(*given, **options):
        raise error

    monkeypatch.setattr(type(trained().trained), "look", fail)
    folder = trained().folder
    client = TestClient(make_app([folder]), base_url="http://localhost")
    answer = client.post("/api/look", json={"run": client.get("/api/runs").json()[0]["run"], "text": "x"})
    assert answer.status_code == 503 and answer.json()["detail"].startswith(told)


def test_runs_are_found_as_they_come(tmp_path, trained):
    client = TestClient(make_app([tmp_path / "runs"]), base_url="http://localhost")
    assert client.get("/api/runs").json() == []
    folder = tmp_path / "runs" / "mine" / "first"
    folder.mkdir(parents=True)
    (folder / "run.yaml").write_bytes((trained().folder / "run.yaml").read_bytes())
    assert [run["run"] for run in client.get("/api/runs").json()] == [folder.as_posix()]


@contextmanager
def as_another_user():
    """Run the block without the rights of root, where the tests have them."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(own)


def test_folders_that_may_not_be_read_and_hidden_ones_are_passed_over(trained):
    with TemporaryDirectory() as given:  # pytest's own folders are closed to other users
        folder = Path(given)
        for name in ("mine", "lost+found", ".bert-of-an-import/run"):
            (folder / name).mkdir(parents=True)
            (folder / name / "run.yaml").write_bytes((trained().folder / "run.yaml").read_bytes())
        folder.chmod(0o755)
        (folder / "lost+found").chmod(0)
        with as_another_user():
            found = Catalogue([folder]).runs()
        (folder / "lost+found").chmod(0o700)
    assert list(found) == [(folder / "mine").as_posix()]


def test_a_refused_body_is_named_as_such(studio):
    client, _ = studio
    json, large = {"content-type": "application/json"}, b'{"run": "' + b"a" * LARGEST_BODY
    answer = client.post("/api/look", content=b"\xff", headers=json)
    assert (answer.status_code, answer.json()["detail"]) == (400, "the body is no JSON object: send one")
    answer = client.post("/api/look", content=iter([large]), headers=json)  # without a Content-Length
    assert answer.status_code == 413 and "bytes: send less at once" in answer.json()["detail"]
    answer = client.delete("/api/runs")
    assert (answer.status_code, answer.json()["detail"]) == (405, "the studio has no DELETE /api/runs")
    assert client.get("/api/nothing").json()["detail"] == "the studio has no GET /api/nothing"


def test_a_port_in_use_is_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(RunError, match=r"^port \d+ .*: give another --port$"):
            serve([tmp_path], taken.getsockname()[1], print)


def test_headers_of_proxies_are_not_trusted(tmp_path, monkeypatch):
    configs = []
    monkeypatch.setattr(AnnouncingServer, "run", lambda server, sockets: configs.append(server.config))
    serve([tmp_path], 0, print)
    assert [config.proxy_headers for config in configs] == [False]
