"""Several runs on the page Runs: which are shown, and the comparison that stands above their curves."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from benchmarks.pages import start_studio

NAMES = ("first, the best", *"bcdefghi")


@pytest.fixture(scope="module")
def runs(tmp_path_factory, trained) -> list[str]:
    """Names of nine runs, one of them with a comma."""
    folder = tmp_path_factory.mktemp("several")
    for name in NAMES:
        (folder / name).mkdir()
        for file in ("run.yaml", "metrics.jsonl"):
            (folder / name / file).write_bytes((trained().folder / file).read_bytes())
    return [(folder / name).as_posix() for name in NAMES]


@pytest.fixture(scope="module")
def address(runs) -> Iterator[str]:
    program, at = start_studio(Path(runs[0]).parent)
    yield at
    program.send_signal(signal.SIGINT)
    assert "Traceback" not in program.communicate(timeout=60)[1]


def verdict_of(page):
    return page.get_by_role("region", name="Comparison")


def test_a_run_with_a_comma_in_its_name_is_shown(visit, runs):
    page = visit("/runs", runs=runs[0]).page
    expect(page.get_by_label(f"Show {runs[0]}")).to_be_checked()
    page.get_by_label(f"Show {runs[1]}").check()
    expect(verdict_of(page)).to_contain_text(f"0 settings differ between {runs[0]} and {runs[1]}")
    again = visit("/runs", runs="\n".join(runs[:2])).page
    for name, on in zip(runs[:3], (True, True, False), strict=True):
        expect(again.get_by_label(f"Show {name}")).to_be_checked(checked=on)


def test_the_last_run_that_is_shown_can_be_taken_away(visit, runs):
    page = visit("/runs", runs=runs[0]).page
    expect(page.get_by_role("img", name="Loss", exact=True)).to_be_visible()
    box = page.get_by_label(f"Show {runs[0]}")
    with page.expect_response("**/api/runs", timeout=60_000):  # the list is filled again
        box.uncheck()
        expect(page.locator(".chart")).to_have_count(0)
        expect(verdict_of(page)).to_contain_text("Tick a run to see its curves.")
    page.wait_for_timeout(500)
    expect(box).not_to_be_checked()
    box.check()
    expect(page.get_by_role("img", name="Loss", exact=True)).to_be_visible()


LISTENERS = """
  window.listeners = 0;
  const [add, remove] = [window.addEventListener, window.removeEventListener];
  window.addEventListener = function (kind, ...rest) {
    window.listeners += kind === "resize";
    return add.call(this, kind, ...rest);
  };
  window.removeEventListener = function (kind, ...rest) {
    window.listeners -= kind === "resize";
    return remove.call(this, kind, ...rest);
  };
"""
"""Counts listeners for the size of the window: plotly has one for each chart that it keeps."""


@pytest.fixture
def growing(tmp_path, trained):
    """The address of a studio over two runs, the first of which is in training; its file of metrics, and all lines."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for file in ("run.yaml", "metrics.jsonl"):
            (tmp_path / name / file).write_bytes((trained().folder / file).read_bytes())
    metrics = tmp_path / "a" / "metrics.jsonl"
    lines = metrics.read_text(encoding="utf-8").splitlines(keepends=True)
    events = [json.loads(line)["event"] for line in lines]
    first = events.index("observation") + 1
    metrics.write_text("".join(lines[:first]), encoding="utf-8")
    program, at = start_studio(tmp_path)
    yield at, metrics, lines, first, events.index("observation", first) + 1
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=60)


def test_a_run_in_training_keeps_its_charts_and_the_focus_of_its_choices(visit, growing):
    at, metrics, lines, first, second = growing
    page = visit("/runs", served=at).page
    page.add_init_script(LISTENERS)
    page.reload()
    runs = [f"{metrics.parent.parent.as_posix()}/{name}" for name in "ab"]
    page.get_by_label(f"Show {runs[1]}").check()
    row = page.locator("table.runs tbody tr").first
    heat = page.get_by_role("img", name=re.compile("Entropy of heads"))
    expect(heat.locator(".heatmaplayer image")).to_be_visible()
    page.wait_for_timeout(500)
    charts = page.locator(".js-plotly-plot").count()
    assert page.evaluate("listeners") == charts
    looks = page.get_by_role("region", name="Heads and samples")
    for end, chosen in ((first + 1, looks.get_by_role("combobox")), (second, looks.get_by_label("Item 2"))):
        chosen.focus()
        metrics.write_text("".join(lines[:end]), encoding="utf-8")
        expect(row.locator("td").nth(4)).to_have_text(f"{json.loads(lines[end - 1])['update']:,}")
        page.wait_for_timeout(500)
        expect(chosen).to_be_focused()
        assert page.evaluate("listeners") == charts
    kind = looks.get_by_role("radio", name="encoder.self_attention")
    kind.check()
    expect(page.get_by_role("img", name="Entropy of heads, encoder.self_attention")).to_be_visible()
    page.wait_for_timeout(500)
    expect(kind).to_be_focused()
    assert page.evaluate("listeners") == charts
    for name in runs:
        page.get_by_label(f"Show {name}").uncheck()
    expect(page.locator(".js-plotly-plot")).to_have_count(0)
    assert page.evaluate("listeners") == 0


def test_too_many_runs_are_refused_until_one_is_taken_away(visit, runs):
    opened = visit("/runs", runs="\n".join(runs))
    page = opened.page
    expect(verdict_of(page)).to_contain_text("These runs were not compared: runs: at most 8 entries")
    page.get_by_label(f"Show {runs[-1]}").uncheck()
    expect(verdict_of(page).get_by_text(re.compile("settings differ between"))).to_have_count(7)
    expect(page.get_by_text("at most 8 entries")).to_have_count(0)
    expect(page.get_by_role("alert")).to_be_hidden()
    opened.complaints[:] = [one for one in opened.complaints if "422" not in one]


def test_a_comparison_that_comes_late_is_not_shown(visit, runs):
    page, waiting = visit("/runs", runs=runs[1]).page, []
    expect(verdict_of(page)).to_contain_text("Tick a second run")
    page.route("**/api/verdict*", lambda route: waiting.append(route) if not waiting else route.continue_())
    with page.expect_request("**/api/verdict*"):
        page.get_by_label(f"Show {runs[2]}").check()
    page.get_by_label(f"Show {runs[3]}").check()
    later = verdict_of(page).get_by_text(f"between {runs[1]} and {runs[3]}")
    expect(later).to_be_visible()
    (first,) = waiting
    with page.expect_response("**/api/verdict*"):
        first.fulfill(response=first.fetch())
    page.wait_for_timeout(500)
    expect(later).to_be_visible()
