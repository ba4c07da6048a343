"""Requests that clients abandon must leave the queue of a server, which its metrics show."""

import asyncio
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from benchmarks.clients import watched_page
from benchmarks.hostile import GAUGES, KEY, left_over
from regardant.server.metrics import Metrics


@contextmanager
def metrics_of(*answers):
    """Serve answers in turn, the last one for ever, to clients with the key. Give the port."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            is_right = (self.path, self.headers["authorization"]) == ("/metrics", f"Bearer {KEY}")
            self.send_response(200 if is_right else 401)
            self.end_headers()
            self.wfile.write((left.pop(0) if len(left) > 1 else left[0]) if is_right else b"")

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def text(waiting, active):
    """Metrics of a server with two runs, the first with an empty queue."""
    metrics = Metrics()
    metrics.watch_queue("idle", lambda: 0)
    metrics.watch_queue("busy", lambda: waiting)
    metrics.watch_active(lambda: active)
    return metrics.text()


def test_gauges_may_reach_0_after_a_while():
    with metrics_of(text(3, 1), text(0, 1), text(0, 0)) as port:
        assert left_over(port, within=10) == []


@pytest.mark.parametrize(
    ("waiting", "active", "faults"),
    [
        (2, 0, ["regardant_queue_rows is 2.0 0 s after the last client"]),
        (0, 1, ["regardant_active_requests is 1.0 0 s after the last client"]),
    ],
)
def test_a_request_that_stays_is_a_fault(waiting, active, faults):
    with metrics_of(text(waiting, active)) as port:
        assert left_over(port, within=0) == faults


def test_a_server_without_the_metrics_is_a_fault():
    with metrics_of(b"") as port:
        assert left_over(port, within=0) == [f"there is no {name} 0 s after the last client" for name in GAUGES]


def test_a_page_that_is_not_answered_is_an_error():
    with metrics_of(b"") as port, pytest.raises(RuntimeError, match="/look was not answered"):
        asyncio.run(watched_page(port, "/look", 0.1))  # refused, without the key
