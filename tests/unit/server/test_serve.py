"""Servers on real ports: slow clients, clients that leave, full queues, TLS, and a process that ends and reloads."""

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from threading import Event

import pytest

from regardant.errors import ConfigError, RunError
from regardant.server import connections, worker
from regardant.server.bodies import SENTENCE
from regardant.server.limits import Limits
from regardant.server.serve import Address, DrainingServer, serve
from regardant.server.worker import ModelCall

BODY = json.dumps({"texts": [SENTENCE]})
JSON = {"content-type": "application/json"}


def asked(port, method, path, body=None):
    """Status, headers and text of an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request(method, path, body, JSON)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def post(port, path, body=BODY):
    """Status, headers and JSON of an answer."""
    status, headers, text = asked(port, "POST", path, body)
    return status, headers, json.loads(text)


def get(port, path):
    """Status and text of an answer."""
    status, _, text = asked(port, "GET", path)
    return status, text


def head(port, path, length):
    """The start of a POST."""
    lines = [f"POST {path} HTTP/1.1", f"host: localhost:{port}", "content-type: application/json"]
    return "\r\n".join([*lines, f"content-length: {length}", "", ""]).encode()


def until(condition, seconds=5.0):
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def closed_after(opened, send=b"", seconds=5.0):
    """Seconds until the other side closes a connection, while a byte is sent every 50 ms."""
    began = time.monotonic()
    opened.settimeout(0.05)
    while time.monotonic() - began < seconds:
        try:
            if send:
                opened.sendall(send)
            if not opened.recv(1024):
                break
        except TimeoutError:
            continue
        except ConnectionError:
            break
    return time.monotonic() - began


def sample(service, name, **labels):
    return service.metrics.registry.get_sample_value(name, labels)


@pytest.mark.parametrize(
    ("begun", "drip"),
    [(b"", b""), (b"GET /health HTTP/1.1\r\nx: ", b"y"), (b"POST", b" "), (None, b" ")],
    ids=["nothing", "a slow header", "a slow method", "a slow body"],
)
def test_a_slow_client_is_cut_off(serving, at_port, begun, drip):
    port, server = at_port(serving("demo", limits=Limits(read_seconds=0.4)))
    with socket.create_connection(("127.0.0.1", port)) as opened:
        opened.sendall(head(port, "/v1/translate", 1000) if begun is None else begun)
        assert 0.2 < closed_after(opened, drip) < 3
    until(lambda: not server.server_state.connections)


def test_a_slow_second_request_is_cut_off_too(serving, at_port):
    port, _ = at_port(serving("demo", limits=Limits(read_seconds=0.4)))
    with socket.create_connection(("127.0.0.1", port)) as opened:
        opened.sendall(head(port, "/v1/translate", len(BODY)) + BODY.encode())
        assert b"200 OK" in opened.recv(65536)
        opened.sendall(b"GET /hea")
        assert 0.2 < closed_after(opened) < 3


def test_a_request_that_is_begun_before_the_last_answer_is_cut_off_too(serving, at_port):
    port, server = at_port(serving("demo", limits=Limits(read_seconds=0.4)))
    with socket.create_connection(("127.0.0.1", port)) as opened:
        opened.sendall(
            f"GET /health HTTP/1.1\r\nhost: localhost:{port}\r\n\r\n".encode() + head(port, "/v1/translate", 9)
        )
        assert b"200 OK" in opened.recv(65536)
        until(lambda: not server.server_state.connections, 2)


def test_a_client_that_takes_no_answer_is_cut_off(serving, at_port):
    port, server = at_port(serving("demo", limits=Limits(read_seconds=0.4)))
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        opened.connect(("127.0.0.1", port))
        request = f"GET /openapi.json HTTP/1.1\r\nhost: localhost:{port}\r\n\r\n".encode()
        opened.sendall(request)
        until(lambda: server.server_state.total_requests == 1)
        with suppress(ConnectionError):
            opened.sendall(800 * request)  # fewer bytes than may follow a request
        until(lambda: not server.server_state.connections, 15)
        assert 1 < server.server_state.total_requests < 800


@pytest.mark.parametrize("header", ["", "connection: upgrade\r\nupgrade: another\r\n"], ids=["plain", "upgrade"])
def test_bytes_after_a_request_are_not_kept_without_a_limit(serving, at_port, header):
    service = serving("text")
    service.workers["text"].run.stream = slow = Slow()
    port, server = at_port(service)
    body = json.dumps({"prompt": "a", "max_tokens": 30})
    begun = head(port, "/v1/generate", len(body)).replace(b"\r\n", f"\r\n{header}".encode(), 1)
    with socket.create_connection(("127.0.0.1", port)) as opened:
        opened.sendall(begun + body.encode())
        until(lambda: slow.written)
        (connection,) = server.server_state.connections
        kept = []
        opened.settimeout(0.5)
        with suppress(ConnectionError, TimeoutError):
            for _ in range(200):
                opened.sendall(b"x" * 100_000)
                kept.append(len(connection.conn.trailing_data[0]))
                time.sleep(0.01)
        until(lambda: not server.server_state.connections)
    assert max(kept, default=0) < 1_000_000  # a read may have 256 KiB
    assert len(slow.written) < 30


def test_requests_that_follow_each_other_are_answered(serving, at_port):
    service = serving("demo")
    port, _ = at_port(service)
    request = head(port, "/v1/translate", len(BODY)) + BODY.encode()
    with socket.create_connection(("127.0.0.1", port)) as opened:
        opened.sendall(20 * request)
        opened.settimeout(20)
        text = b""
        while text.count(b"200 OK") < 20:
            received = opened.recv(65536)
            assert received, f"closed after {text.count(b'200 OK')} answers"
            text += received


def test_a_patient_client_is_answered(serving, at_port):
    port, _ = at_port(serving("demo", limits=Limits(read_seconds=0.3, max_wait_ms=600)))
    assert post(port, "/v1/translate")[0] == 200  # computing takes longer than reading may


def test_connections_beyond_the_limit_are_refused(serving, at_port):
    port, server = at_port(serving("demo", limits=Limits(connections=3)))
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    until(lambda: len(server.server_state.connections) == 3)
    assert get(port, "/health")[0] == 503
    for one in idle:
        one.close()
    until(lambda: get(port, "/health")[0] == 200)


def test_connections_far_beyond_the_limit_are_closed(serving, at_port, monkeypatch):
    monkeypatch.setattr(connections, "SPARE", 1)
    port, server = at_port(serving("demo", limits=Limits(connections=1)))
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(3)]
        assert closed_after(opened[-1]) < 3
        assert len(server.server_state.connections) == 2


def test_a_header_does_not_change_the_address_whose_requests_are_counted(serving, at_port):
    port, _ = at_port(serving("demo", limits=Limits(max_rate=2)))
    statuses = []
    for number in range(4):
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
            connection.request("GET", "/v1/runs", headers={"x-forwarded-for": f"10.0.0.{number}"})
            statuses.append(connection.getresponse().status)
    assert statuses[:2] == [200, 200] and 429 in statuses


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have 127.0.0.1 alone")
def test_another_loopback_address_is_answered(serving, at_port):
    port, _ = at_port(serving("demo"), host="127.0.1.1")
    with closing(http.client.HTTPConnection("127.0.1.1", port, timeout=20)) as connection:
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200


def test_work_of_a_client_that_left_is_not_computed(serving, at_port):
    service = serving("demo", limits=Limits(max_wait_ms=600))
    port, _ = at_port(service)
    with socket.create_connection(("127.0.0.1", port)) as opened:
        opened.sendall(head(port, "/v1/translate", len(BODY)) + BODY.encode())
        until(lambda: service.workers["demo"].rows_waiting == 1)
    until(lambda: service.active == 0)
    time.sleep(0.8)
    assert sample(service, "regardant_dropped_total", run="demo") == 1
    assert not sample(service, "regardant_batch_rows_count", run="demo")
    assert sample(service, "regardant_requests_total", path="/v1/translate", status="499") == 1


def test_a_request_that_takes_too_long_is_answered_and_not_computed(serving, client_of):
    service = serving("demo", limits=Limits(timeout=0.2, max_wait_ms=500))
    answer = client_of(service).post("/v1/translate", json={"texts": [SENTENCE]})
    assert answer.status_code == 504
    assert answer.json()["error"].startswith("the answer took more than 0.2 s, the timeout of a request: send")
    time.sleep(0.6)
    assert not sample(service, "regardant_batch_rows_count", run="demo")


def test_a_full_queue_is_told_with_the_time_to_wait(serving, at_port):
    service = serving("demo", limits=Limits(max_queue=1, max_wait_ms=600))
    port, _ = at_port(service)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(post, port, "/v1/translate")
        until(lambda: service.workers["demo"].rows_waiting == 1)
        status, headers, answer = post(port, "/v1/translate")
        assert (status, headers["retry-after"]) == (429, "1")
        assert answer["error"] == "1 items are waiting for demo, allowed are 1: try again in 1 s"
        assert first.result()[0] == 200


def test_requests_at_one_time_share_a_batch_and_get_their_own_answers(serving, at_port, trained):
    service = serving("demo", limits=Limits(max_batch=8, max_wait_ms=2000))
    port, _ = at_port(service)
    texts = [f"{SENTENCE} {'The cat sees the dog. ' * (number % 3)}".strip() for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda text: post(port, "/v1/translate", json.dumps({"texts": [text]})), texts))
    assert [answer["translations"][0]["text"] for _, _, answer in answers] == [
        one.text for one in trained().translate(texts)
    ]
    assert sample(service, "regardant_batch_rows_count", run="demo") == 1
    assert sample(service, "regardant_batch_rows_sum", run="demo") == 8


class Slow:
    """A stream of letters, one every 30 ms."""

    def __init__(self):
        self.written = []

    def __call__(self, prompt, *, max_tokens, **options):
        yield prompt
        for _ in range(max_tokens):
            time.sleep(0.03)
            self.written.append(prompt)
            yield prompt


def test_a_stream_ends_when_its_client_leaves(serving, at_port):
    service = serving("text")
    service.workers["text"].run.stream = slow = Slow()
    port, _ = at_port(service)
    body = json.dumps({"prompt": "a", "max_tokens": 30})
    with socket.create_connection(("127.0.0.1", port)) as opened:
        opened.sendall(head(port, "/v1/generate", len(body)) + body.encode())
        until(lambda: len(slow.written) >= 3)
    until(lambda: service.active == 0)
    written = len(slow.written)
    time.sleep(0.2)
    assert len(slow.written) <= written + 1 < 10  # a token that was begun is computed


def test_streams_are_written_in_turn(serving, at_port):
    service = serving("text")
    service.workers["text"].run.stream = slow = Slow()
    port, _ = at_port(service)

    def stream(letter):
        body = json.dumps({"prompt": letter, "max_tokens": 20})
        return asked(port, "POST", "/v1/generate", body)[2].count('data: {"text"')

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(stream, "ab")) == [20, 20]
    turns = "".join(slow.written)
    assert "ababab" in turns and not turns.startswith("a" * 20)


def test_a_stream_that_takes_too_long_ends_with_an_error(serving, client_of):
    service = serving("text", limits=Limits(timeout=0.3))
    service.workers["text"].run.stream = Slow()
    text = client_of(service).post("/v1/generate", json={"prompt": "a", "max_tokens": 100}).text
    assert text.count('data: {"text"') < 20
    assert 'event: error\ndata: {"error": "the answer took more than 0.3 s' in text


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A certificate for localhost, and its key."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", folder / "cert.pem", "-keyout", folder / "key.pem"]
    subprocess.run([program, *options.split(), *files], check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


def test_tls_is_uvicorn_s(serving, at_port, certificate):
    cert, key = certificate
    port, _ = at_port(serving("demo"), tls_cert=cert, tls_key=key)
    context = ssl.create_default_context(cafile=str(cert))
    with closing(http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)) as connection:
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200


def test_settings_that_cannot_be_used_are_one_line(named_runs, certificate, tmp_path, monkeypatch):
    monkeypatch.delenv("REGARDANT_API_KEY", raising=False)
    cert, key = certificate
    (tmp_path / "demo").symlink_to(named_runs / "demo")
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    demo = [named_runs / "demo"]

    def told(folders, error=ConfigError, **address):
        with pytest.raises(error) as raised:
            serve(folders, Address(**{"port": 0, **address}), Limits(), print)
        assert "\n" not in str(raised.value)
        return str(raised.value)

    assert "--tls-cert and --tls-key need each other" in told(demo, tls_cert=cert)
    assert "cannot be used" in told(demo, tls_cert=broken, tls_key=key)
    assert "cannot be used (No such file" in told(demo, tls_cert=tmp_path / "no.pem", tls_key=key)
    assert "both named demo: rename one" in told([*demo, tmp_path / "demo"])
    assert "an API key is needed" in told(demo, host="0.0.0.0")
    assert "is no address of this machine" in told(demo, RunError, host="no host")
    key = tmp_path / "key.txt"
    key.write_text("a-key-of-some-length\n")
    foreign = told(demo, RunError, host="203.0.113.7", api_key_file=key)  # RFC 5737: of no machine
    assert "the host '203.0.113.7' is no address of this machine" in foreign and "give another --host" in foreign
    assert "the host 'a..b' is no address of this machine (not a host name)" in told(demo, RunError, host="a..b")
    assert "there is no run" in told([tmp_path / "nothing"], RunError)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "give another --port" in told(demo, RunError, port=taken.getsockname()[1])


@pytest.mark.parametrize(("raised", "status"), [(None, 0), (KeyboardInterrupt, 130)])
def test_a_batch_without_clients_does_not_keep_the_process(named_runs, monkeypatch, raised, status):
    """As after a request that took too long: nothing can stop its thread."""
    ended, free, lines = [], Event(), []

    def compute(run, rows):
        free.wait(10)
        return rows

    def run(server, sockets):
        server.service.workers["demo"].submit(ModelCall(compute, ["a"]))
        if raised:
            raise raised

    monkeypatch.setattr(worker, "JOIN_SECONDS", 0.1)
    monkeypatch.setattr(DrainingServer, "run", run)
    monkeypatch.setattr(os, "_exit", ended.append)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(raised) if raised else nullcontext():
        serve([named_runs / "demo"], Address(port=0), Limits(), lines.append)
    signal.signal(signal.SIGTERM, before)
    free.set()
    assert ended == [status] and lines == ["a batch of demo is abandoned: its clients have disconnected"]


@contextmanager
def process(*arguments):
    """A server process, its port, and what it writes to stderr."""
    command = [sys.executable, "-m", "regardant", "serve", *map(str, arguments), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}) as run:
        try:
            lines = [run.stderr.readline()]
            while lines[-1] and " served at http://127.0.0.1:" not in lines[-1]:
                lines.append(run.stderr.readline())
            assert lines[-1], "".join(lines)
            yield run, int(lines[-1].split(":")[-1].split()[0])
        finally:
            run.kill()


def line_of(server, event):
    """The next line of an event in the log of a process."""
    return next(line for line in map(json.loads, server.stderr) if line["event"] == event)


def test_a_process_reloads_and_ends_after_accepted_work(tmp_path, trained):
    shutil.copytree(trained().folder, tmp_path / "demo")
    with process(tmp_path / "demo", "--max-wait-ms", 500) as (server, port), ThreadPoolExecutor() as pool:
        during = pool.submit(post, port, "/v1/translate")
        server.send_signal(signal.SIGHUP)
        assert line_of(server, "reload") == {"event": "reload", "run": "demo", "outcome": "done"}
        assert during.result()[0] == 200
        (tmp_path / "demo" / "model.safetensors").rename(tmp_path / "gone")
        server.send_signal(signal.SIGHUP)
        assert line_of(server, "reload")["outcome"] == "failed"

        with socket.create_connection(("127.0.0.1", port)) as accepted:
            accepted.sendall(head(port, "/v1/translate", len(BODY)))
            until(lambda: "regardant_active_requests 1.0" in get(port, "/metrics")[1])
            server.send_signal(signal.SIGTERM)
            until(lambda: get(port, "/ready")[0] == 503)
            status, headers, answer = post(port, "/v1/translate")
            assert (status, headers["retry-after"]) == (503, "5") and "shutting down" in answer["error"]
            accepted.sendall(BODY.encode())
            accepted.settimeout(10)
            answer = accepted.makefile("rb").read().decode()
        assert answer.startswith("HTTP/1.1 200") and '"translations":[{"text":"' in answer
        assert server.wait(10) == 0
        assert "Traceback" not in server.stderr.read()
