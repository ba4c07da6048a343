"""Pages and looks whose status is an error are no measurement."""

from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from benchmarks import pages

FINE, WRONG = SimpleNamespace(ok=True, status=200), SimpleNamespace(ok=False, status=500)


def browser(opened, looked_at=FINE):
    """A browser whose pages are answered with one response, and looks with another."""
    page = MagicMock()
    page.goto.return_value = opened
    page.expect_response.return_value = nullcontext(SimpleNamespace(value=looked_at))
    page.evaluate.return_value = 250
    return SimpleNamespace(new_context=lambda viewport: MagicMock(new_page=lambda: page))


def test_a_page_is_timed_if_it_is_answered():
    assert pages.painted(browser(FINE), "http://a/runs") == 0.25
    assert pages.looked_at(browser(FINE), "http://a") >= 0


@pytest.mark.parametrize(
    ("measure", "opened", "looked_at", "said"),
    [
        (pages.painted, WRONG, FINE, "http://a: status 500"),
        (pages.painted, None, FINE, "http://a: no answer"),
        (pages.drawn, WRONG, FINE, "http://a: status 500"),
        (pages.looked_at, FINE, WRONG, "/api/look: status 500"),
    ],
)
def test_an_error_is_no_measurement(measure, opened, looked_at, said):
    with pytest.raises(RuntimeError, match=said):
        measure(browser(opened, looked_at), "http://a")
