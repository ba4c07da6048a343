"""Every page of the studio at three widths: no text cut, none on other text, no page too wide, no serious fault of
accessibility. `make bench-pages` measures how soon they are painted."""

import shutil
import signal
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from benchmarks.pages import start_studio
from regardant import config, run
from regardant.tasks.node_classification.task import NodeClassificationConfig

from .layout import faults

WIDTHS = {1400: 900, 800: 900, 390: 844}
"""Heights of a window by its width."""

KINDS = ("translator", "language model", "classifier", "vision transformer", "graph")
GRAPH = {
    "task": "node_classification",
    "data": {"nodes": "nodes.tsv", "edges": "edges.tsv"},
    "input": {"kind": "graph"},
    "model": {
        "d_model": 16,
        "num_heads": 2,
        "num_layers": 2,
        "d_ff": 16,
        "max_length": 64,
        "dropout": 0.0,
        "scale_embeddings": False,
        "positions": {"kind": "none"},
    },
    "training": {"max_updates": 20, "batch_tokens": 64, "validate_every": 10, "precision": "float32", "processes": 1},
}
SERIOUS = ("serious", "critical")


def trained_on_a_graph(folder):
    """Train on a ring of forty nodes, of which each half has a word of its own."""
    nodes = [
        f"n{i}\t{'left' if i < 20 else 'right'}\t{('train', 'val', 'test')[i % 3]}\t{'ab' if i < 20 else 'cd'} x"
        for i in range(40)
    ]
    (folder / "nodes.tsv").write_text("\n".join(["node\tlabel\tsplit\twords", *nodes, ""]), encoding="utf-8")
    edges = [f"n{i}\tn{(i + step) % 40}" for i in range(40) for step in (1, 2)]
    (folder / "edges.tsv").write_text("\n".join(["source\ttarget", *edges, ""]), encoding="utf-8")
    recipe = config.load(NodeClassificationConfig, GRAPH, (f"data.root={folder}",), origin="graph")
    run.train(recipe, folder / "run", lambda line: None)
    return run.load(folder / "run")


@pytest.fixture(scope="module")
def runs(tmp_path_factory, trained, trained_on_text, trained_on_labels, trained_on_digits) -> dict[str, str]:
    """Names of a run of each kind."""
    graph = trained_on_a_graph(tmp_path_factory.mktemp("graph"))
    found = dict(
        zip(KINDS, [trained(), trained_on_text(), trained_on_labels(), trained_on_digits(), graph], strict=True)
    )
    folder = tmp_path_factory.mktemp("kinds")
    return {
        kind: shutil.copytree(one.folder, folder / kind.replace(" ", "-")).as_posix() for kind, one in found.items()
    }


@pytest.fixture(scope="module")
def address(runs) -> Iterator[str]:
    program, at = start_studio(*runs.values())
    yield at
    program.send_signal(signal.SIGINT)
    assert "Traceback" not in program.communicate(timeout=60)[1]


def assert_sound(page: Page, *, accessible: bool = True) -> None:
    """Wait for the page to be whole, then look for faults."""
    page.locator("main > *").first.wait_for()
    page.wait_for_timeout(300)
    page.locator("[aria-busy=true]").first.wait_for(state="detached")
    page.wait_for_timeout(300)
    assert faults(page) == []
    if accessible:
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in SERIOUS] == []


def at(width: int) -> dict[str, object]:
    """Return the options of a window."""
    return {"viewport": {"width": width, "height": WIDTHS[width]}, "reduced_motion": "reduce"}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_pages_of_a_run_are_sound(visit, runs, kind, width):
    for page, state in (("look", {"run": runs[kind]}), ("steps", {"run": runs[kind]}), ("runs", {"runs": runs[kind]})):
        opened = visit(f"/{page}", options=at(width), **state)
        expect(opened.page.locator("svg, canvas").first).to_be_visible()
        assert_sound(opened.page, accessible=width != 800)
        opened.screenshot(f"layout-{page}-{kind.replace(' ', '-')}-{width}")


TABS = {
    "look": ("Alignment", "One head", "All heads", "Beam search", "Compare"),
    "steps": ("Five steps", "Token by token", "Through the layers", "Masks", "Shapes"),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("page", "tab"), [(page, tab) for page, tabs in TABS.items() for tab in tabs])
def test_every_tab_of_a_translator_is_sound(visit, runs, page, tab, width):
    opened = visit(f"/{page}", options=at(width), run=runs["translator"], tab=tab)
    expect(opened.page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    expect(opened.page.get_by_role("tabpanel").locator("svg, canvas").first).to_be_visible()
    assert_sound(opened.page, accessible=width != 800)
    opened.screenshot(f"layout-{page}-{tab.lower().replace(' ', '-')}-{width}")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_page_the_lab_and_a_comparison_are_sound(visit, runs, width):
    opened = visit("/", options=at(width))
    expect(opened.page.get_by_role("list", name="Timeline")).to_be_visible()
    assert_sound(opened.page)
    opened.screenshot(f"layout-home-{width}")
    opened = visit("/lab", options=at(width))
    opened.page.get_by_role("button", name="Less than a quarter").click()
    expect(opened.page.get_by_text("Right.")).to_be_visible()
    assert_sound(opened.page)
    opened = visit("/runs", options=at(width), runs=f"{runs['translator']}\n{runs['classifier']}")
    expect(opened.page.get_by_text("These runs solve different tasks")).to_be_visible()
    assert_sound(opened.page)


def test_a_look_at_a_translator_fits_a_screen(visit, runs):
    page = visit("/look", options=at(1400), run=runs["translator"]).page
    expect(page.locator(".crossing path").first).to_be_visible()
    expect(page.get_by_role("tab", name="Alignment")).to_have_attribute("aria-selected", "true")
    assert page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0


BROKEN = {
    "leaves the page": "<p style='position: absolute; left: -40px'>too far left</p>",
    "too wide": "<p style='width: 3000px'>wide</p>",
    "lies on": (
        "<p style='position: absolute; top: 9px; left: 9px'>one</p>"
        "<p style='position: absolute; top: 12px; left: 9px'>two</p>"
    ),
    "is cut": "<div style='width: 50px; overflow: hidden; white-space: nowrap'>a long line of text</div>",
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_of_the_layout_is_found(open_page, fault):
    page = open_page(f"<!doctype html><title>x</title><body>{BROKEN[fault]}</body>").page
    assert any(fault in one for one in faults(page))
