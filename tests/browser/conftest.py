"""Pages in a real browser, Debian's Chromium, with the network cut. Skipped where none is installed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from benchmarks.pages import ADDRESS, chromium

SCREENSHOTS = Path(__file__).parents[2] / ".screenshots"
PATIENCE = 60_000
"""Milliseconds: other programs may be using the machine."""
expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium is installed: make test-browser would install it where it may")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page and all that it did beside showing itself."""

    page: Page
    address: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """Errors and warnings on the console, and what was thrown."""

    def screenshot(self, name: str) -> None:
        """Kept to be looked at."""
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens HTML from disk; afterwards it must have asked for nothing else and complained of nothing."""
    opened: list[Opened] = []

    def open_(html: str, fragment: str = "", **options: object) -> Opened:
        path = tmp_path / f"{len(opened)}.html"
        path.write_text(html, encoding="utf-8")
        context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900}, **options)
        one = Opened(context.new_page(), f"{path.as_uri()}{fragment}")
        opened.append(one)
        one.page.on("request", lambda request: one.requests.append(request.url))
        one.page.on("console", lambda said: said.type in ("error", "warning") and one.complaints.append(said.text))
        one.page.on("pageerror", lambda error: one.complaints.append(str(error)))
        one.page.goto(one.address)
        return one

    yield open_
    for one in opened:
        asked = [url for url in one.requests if not url.startswith(("data:", "blob:"))]
        assert asked == [one.address.partition("#")[0]]
        assert one.complaints == []
        one.page.context.close()


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Callable[..., Opened]]:
    """Open a page of the studio at the module's `address` with a state. It may ask only the studio, without errors."""
    opened: list[Opened] = []

    def visit_(
        page: str, *, served: str = address, options: dict[str, object] | None = None, **state: object
    ) -> Opened:
        window = {"viewport": {"width": 1280, "height": 900}, "accept_downloads": True}
        context = browser.new_context(**{**window, **(options or {})})
        context.set_default_timeout(PATIENCE)
        one = Opened(context.new_page(), f"{served}{page}" + (f"#{urlencode(state)}" if state else ""))
        opened.append(one)
        one.page.on("request", lambda request: one.requests.append(request.url))
        one.page.on("console", lambda line: line.type in ("error", "warning") and one.complaints.append(line.text))
        one.page.on("pageerror", lambda error: one.complaints.append(str(error)))
        one.page.goto(one.address)
        return one

    yield visit_
    for one in opened:
        origin = ADDRESS.match(one.address)
        assert origin is not None
        foreign = [url for url in one.requests if not url.startswith((origin[0], "data:", "blob:"))]
        assert foreign == []
        assert one.complaints == []
        one.page.context.close()
