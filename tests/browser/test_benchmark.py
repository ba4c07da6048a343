"""The benchmark of pages times what a real server answers, and no error."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from benchmarks import pages

LOOK = b"""<p class="translation">Un chat.</p><label>Text <input></label>
<button onclick="fetch('/api/look')">Show</button>"""


class Answers(BaseHTTPRequestHandler):
    """Answers /look with a page, and every other address with an error."""

    def do_GET(self) -> None:
        found = self.path == "/look"
        self.send_response(200 if found else 500)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(LOOK)

    def log_message(self, *words: object) -> None:
        """Write nothing to stderr."""


@contextmanager
def served() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_page_is_timed_and_an_error_is_no_measurement(browser):
    with served() as address:
        assert 0 < pages.painted(browser, f"{address}/look") < 60
        for measure in (pages.painted, pages.drawn):
            with pytest.raises(RuntimeError, match=f"{address}/runs: status 500"):
                measure(browser, f"{address}/runs")


def test_a_look_that_fails_is_no_measurement(browser):
    with served() as address, pytest.raises(RuntimeError, match="/api/look: status 500"):
        pages.looked_at(browser, address)
