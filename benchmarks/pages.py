"""Seconds until a browser paints each page of the studio, a look at a sentence, and a large picture of attention.

    make bench-pages

Headless Chromium on this machine. Written to benchmarks/results/pages.json.
"""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from playwright.sync_api import Browser, Page, Response, sync_playwright

from regardant.pictures import AttentionPicture, attention_page

from .bars import bar, conclude, lines, rounded
from .records import Measurement, arguments
from .startup import DEMO, train_demo

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
PAGES = ("/", "/runs", "/look", "/steps", "/lab")
SENTENCE = "The old judge sees the small cat and the small dog today."
KINDS = ("Encoder self-attention", "Decoder self-attention", "Cross-attention")
LAYERS, HEADS, TOKENS = 6, 8, 60
LOOK, PICTURE = "a look at twelve words", "six layers of attention"
REPEATS = 7
PAINT_SECONDS, LOOK_SECONDS = 1.0, 1.0
FIRST_PAINT = """() => new Promise((resolve) => new PerformanceObserver((list) => {
    for (const paint of list.getEntriesByName("first-contentful-paint")) resolve(paint.startTime);
}).observe({type: "paint", buffered: true}))"""
"""JavaScript with the milliseconds to the first paint, which the browser may report some time later."""


def chromium() -> str | None:
    """Return the browser's program, if one is installed."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def start_studio(*folders: Path) -> tuple[subprocess.Popen[str], str]:
    """Start the studio with runs on a free port, in a process group of its own. Return the process and the address that
    it prints. Raises RuntimeError with its output if it does not start."""
    command = [sys.executable, "-m", "regardant", "studio", "--port", "0", *map(str, folders)]
    program = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert program.stderr is not None
    line = program.stderr.readline()
    if (address := ADDRESS.search(line)) is None:
        raise RuntimeError(f"the studio did not start: {line}{program.stderr.read()}")
    return program, address[0]


@contextmanager
def opened(browser: Browser, address: str) -> Iterator[Page]:
    """Open a page in a window of its own, without a cache. Raises RuntimeError if its status is an error."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    require_ok(page.goto(address), address)
    yield page
    context.close()


def require_ok(response: Response | None, address: str) -> None:
    """Raise RuntimeError unless an address was answered, and its status is no error."""
    if response is None or not response.ok:
        raise RuntimeError(f"{address}: {f'status {response.status}' if response else 'no answer'}")


def painted(browser: Browser, address: str) -> float:
    """Return the seconds from the request to the first text or picture."""
    with opened(browser, address) as page:
        return float(page.evaluate(FIRST_PAINT)) / 1000


def looked_at(browser: Browser, address: str) -> float:
    """Return the seconds from a click on Show to the answer for a sentence of twelve words."""
    with opened(browser, f"{address}/look#run={DEMO.name}") as page:
        page.locator(".translation").wait_for()
        page.get_by_label("Text", exact=True).fill(SENTENCE)
        start = time.perf_counter()
        with page.expect_response("**/api/look") as answer:
            page.get_by_role("button", name="Show").click()
        seconds = time.perf_counter() - start
        require_ok(answer.value, "/api/look")
        return seconds


def large_picture(folder: Path) -> str:
    """Write a page with three kinds of attention of a deep model and return its address."""
    rows = np.random.default_rng(0).dirichlet(np.full(TOKENS, 0.2), (len(KINDS), LAYERS, HEADS, TOKENS))
    words = [f"w{i}" for i in range(TOKENS)]
    pictures = [
        AttentionPicture("A sentence", words, words, weights, kind=kind)
        for kind, weights in zip(KINDS, rows, strict=True)
    ]
    path = folder / "attention.html"
    path.write_text(attention_page([pictures], title="Attention", in_words=False), encoding="utf-8")
    return path.as_uri()


def drawn(browser: Browser, address: str) -> float:
    """Return the seconds until the cells of a picture are drawn."""
    with opened(browser, address) as page:
        page.wait_for_selector(".figure > svg .cell")
        return float(page.evaluate("performance.now()")) / 1000


def measured(program: str, served: str) -> dict[str, list[float]]:
    """Return the seconds of every repeat, taken in turn, by what was shown."""
    readings: dict[str, list[float]] = {name: [] for name in (*PAGES, LOOK, PICTURE)}
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        large = large_picture(Path(folder))
        for number in range(1 + REPEATS):  # the first is the warm-up: the browser reads its own files
            taken = {page: painted(browser, f"{served}{page}") for page in PAGES}
            taken |= {LOOK: looked_at(browser, served), PICTURE: drawn(browser, large)}
            if number:
                for name, seconds in taken.items():
                    readings[name].append(seconds)
        browser.close()
    return readings


def main() -> None:
    measurement = Measurement(scratch=arguments(__doc__).parse_args().scratch)
    program = chromium()
    if program is None:
        sys.exit("no Chromium is installed: install one (Debian: apt install chromium)")
    train_demo()
    studio, served = start_studio(DEMO)
    try:
        readings = measured(program, served)
    finally:
        studio.terminate()
        studio.wait()
    seconds = {name: median(taken) for name, taken in readings.items()}
    bars = [
        bar("seconds until the slowest page is painted", max(seconds[page] for page in PAGES), PAINT_SECONDS),
        bar("seconds of a look at a sentence of twelve words", seconds[LOOK], LOOK_SECONDS),
        bar("seconds until six layers of eight heads on sixty tokens are drawn", seconds[PICTURE], PAINT_SECONDS),
    ]
    print(*(f"{name:24}{value:6.2f} s" for name, value in seconds.items()), *lines(bars), sep="\n")
    measurement.keep(
        "pages",
        {
            "command": "make bench-pages",
            "browser": browser_version(program),
            "seconds": {name: rounded(value) for name, value in seconds.items()},
            "readings": {name: [rounded(value) for value in taken] for name, taken in readings.items()},
            "bars": bars,
        },
    )
    conclude(bars)


def browser_version(program: str) -> str:
    """Return the name and version that a browser prints."""
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
