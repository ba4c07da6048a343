"""The studio over runs of several tasks: every page shows the item, answer and attention of each or refuses."""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from benchmarks.pages import start_studio
from regardant import config, run
from regardant.tasks import load_recipe

TEXTS = {
    "pairs": "The old judge sees the small cat.",
    "language model": "the old cat",
    "sentiment": "a gripping and lovely film",
}
QUICK = ["training.max_epochs=null", "training.max_updates=40", "training.validate_every=20"]
QUICK += ["training.precision=float32", "training.attention_kernel=sdpa", "training.processes=1"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory, trained, trained_on_text, trained_on_digits) -> dict[str, run.Run]:
    """Trained runs of several tasks, in folders with names of their own."""
    found = {
        "pairs": trained(),
        "language model": trained_on_text(),
        "digits": trained_on_digits(),
        "recurrent": trained_on_text("model={kind: recurrent, embedding_size: 16, hidden_size: 16}"),
        "convolution": trained(
            *(f"model.{one}.self_attention={{kind: convolution, kernel: 3}}" for one in ("encoder", "decoder")),
            "training.max_updates=20",
        ),
    }
    if "REGARDANT_DATA" in os.environ:
        found["sentiment"] = trained_on_reviews(tmp_path_factory.mktemp("sst2"))
    folder = tmp_path_factory.mktemp("any")
    return {name: run.load(shutil.copytree(one.folder, folder / name.replace(" ", "-"))) for name, one in found.items()}


def trained_on_reviews(folder: Path) -> run.Run:
    """Train the recipe `sst2` on 300 sentences, for 40 updates."""
    source = Path(os.environ["REGARDANT_DATA"]) / "sst2"
    for name, count in (("train.tsv", 300), ("dev.tsv", 50)):
        lines = (source / name).read_text("utf-8").splitlines(keepends=True)
        (folder / name).write_text("".join(lines[:count]), encoding="utf-8")
    small = ["model.d_model=32", "model.num_heads=2", "model.d_ff=64", f"data.root={folder}"]
    recipe = load_recipe(config.recipe("sst2"), [*QUICK, *small], origin="sst2")
    assert run.train(recipe, folder / "run", log=lambda line: None).finished
    return run.load(folder / "run")


def of_kind(runs: dict[str, run.Run], kind: str) -> run.Run:
    """Return a run. Skip the test if its data is not here."""
    if kind not in runs:
        pytest.skip("REGARDANT_DATA names no folder of real data")
    return runs[kind]


@pytest.fixture(scope="module")
def address(runs) -> Iterator[str]:
    program, at = start_studio(*(one.folder for one in runs.values()))
    yield at
    program.send_signal(signal.SIGINT)
    assert "Traceback" not in program.communicate(timeout=60)[1]


def name_of(one: run.Run) -> str:
    return one.folder.as_posix()


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_is_looked_at_with_what_its_task_has(visit, runs, kind):
    one = of_kind(runs, kind)
    opened = visit("/look", run=name_of(one), text=TEXTS[kind], tab="One head")
    page = opened.page
    found = one.inspect(TEXTS[kind])
    expect(page.locator(".translation")).to_have_text(found.answer)
    expect(page.get_by_label("Text", exact=True)).to_have_value(TEXTS[kind])
    expect(page.locator(".figure > svg")).to_be_visible()
    expect(page.get_by_role("radio", name="Grid")).to_be_hidden()
    translates = kind == "pairs"
    for part in (page.get_by_role("tab", name="Beam search"), page.get_by_role("tab", name="Alignment")):
        expect(part).to_be_visible(visible=translates)
    page.get_by_text("Options", exact=True).click()
    for part in (page.get_by_label("Its translation"), page.get_by_label("Beam size")):
        expect(part).to_be_visible(visible=translates)
    shares = page.get_by_role("list", name="Probabilities").get_by_role("listitem")
    expect(shares).to_have_count(min(5, len(found.shares)))
    if len(found.shares) > 5:
        page.get_by_role("button", name=f"{len(found.shares) - 5} more").click()
        expect(shares).to_have_count(len(found.shares))
    if found.shares:
        expect(shares.first).to_contain_text(f"{100 * found.shares[0][1]:.1f}%")
        assert "translat" not in page.locator("body").inner_text().lower()
    opened.screenshot(f"studio-look-{kind.replace(' ', '-')}")


def test_an_image_is_looked_at_by_its_patches(visit, runs, digit):
    digits = runs["digits"]
    opened = visit("/look", run=name_of(digits), text=digit.as_posix())
    page = opened.page
    found = digits.inspect(str(digit))
    expect(page.locator(".translation")).to_have_text(found.answer)
    expect(page.locator(".item-grid img")).to_be_visible()
    expect(page.get_by_role("radio", name="Grid")).to_be_checked()
    page.get_by_role("radio", name="Encoder self-attention, layer 2, head 2").click()
    page.get_by_role("button", name="row 2, column 1").click()
    expect(page.locator(".readout")).to_contain_text("row 2, column 1 looks at")
    weights = found.pictures[0].weights[1, 1, 2]
    shades = page.locator(".figure .lit").evaluate_all("all => all.map((one) => +one.getAttribute('fill-opacity'))")
    np.testing.assert_allclose(shades, 0.75 * weights / weights.max(), atol=0.02)
    opened.screenshot("studio-look-digits")


def test_an_image_run_opens_on_an_example_and_takes_files(visit, runs, digit):
    page = visit("/look", run=name_of(runs["digits"])).page
    examples = page.get_by_role("group", name="Examples").get_by_role("button")
    expect(examples).to_have_count(8)
    text = page.get_by_label(re.compile("^File"))
    expect(text).to_have_value(re.compile("example-1.png$"))
    examples.nth(2).click()
    expect(text).to_have_value(re.compile("example-3.png$"))
    page.get_by_label("Choose a file").set_input_files(digit)
    expect(text).to_have_value(re.compile(f"{digit.name}$"))
    expect(page.locator(".item-grid img")).to_have_attribute("alt", digit.name)
    expect(page.locator(".translation")).to_have_text(runs["digits"].predict([str(digit)])[0].answer)


def test_a_file_that_is_no_image_is_refused_in_one_line(visit, runs, tmp_path):
    opened = visit("/look", run=name_of(runs["digits"]))
    page = opened.page
    (tmp_path / "broken.png").write_text("no image")
    page.get_by_label("Choose a file").set_input_files(tmp_path / "broken.png")
    expect(page.get_by_role("alert")).to_contain_text("broken.png cannot be read")
    expect(page.get_by_role("alert")).to_contain_text("give the path of a PNG, JPEG or .npy file")
    opened.complaints[:] = [one for one in opened.complaints if "422" not in one]


def test_an_item_gives_way_where_the_next_run_reads_another_kind(visit, runs):
    page = visit("/look", run=name_of(of_kind(runs, "sentiment")), text="a lovely film").page
    expect(page.get_by_label("Text", exact=True)).to_have_value("a lovely film")
    choose = page.get_by_role("combobox", name="Run")
    choose.select_option(name_of(runs["language model"]))
    expect(page.locator(".translation")).to_contain_text("likeliest next")
    expect(page.get_by_label("Text", exact=True)).to_have_value("a lovely film")
    choose.select_option(name_of(runs["digits"]))
    expect(page.get_by_label(re.compile("^File"))).to_have_value(re.compile("example-1.png$"))
    expect(page.get_by_role("tab", name="One head")).to_have_attribute("aria-selected", "true")
    choose.select_option(name_of(runs["pairs"]))
    expect(page.get_by_label("Text", exact=True)).not_to_have_value(re.compile("png$"))
    expect(page.locator(".crossing")).to_be_visible()
    expect(page.get_by_role("group", name="Examples").get_by_role("img")).to_have_count(0)


def test_a_model_without_attention_answers_and_its_attention_is_refused_by_name(visit, runs):
    name = name_of(runs["recurrent"])
    opened = visit("/look", run=name, text="the old cat")
    page = opened.page
    expect(page.get_by_role("list", name="Probabilities").get_by_role("listitem")).to_have_count(5)
    expect(page.get_by_role("button", name="5 more")).to_be_visible()
    expect(page.get_by_text(f"{name} has no attention to draw")).to_be_visible()
    expect(page.get_by_text("Heads switched off")).to_be_hidden()
    opened.screenshot("studio-look-recurrent")
    opened = visit("/steps", run=name, text="the old cat")
    page = opened.page
    expect(page.get_by_role("alert")).to_have_text(
        f"{name} has no attention, and so no steps to show: see Through the layers, or Shapes"
    )
    page.get_by_role("tab", name="Through the layers").click()
    expect(page.get_by_role("radio", name="forget gate")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_hidden()
    opened.complaints[:] = [one for one in opened.complaints if "422" not in one]


def test_convolutions_are_drawn_and_heads_alone_are_switched_off(visit, runs):
    page = visit("/look", run=name_of(runs["convolution"]), text=TEXTS["pairs"], tab="All heads").page
    for kind in ("Encoder self-attention by position", "Decoder self-attention by position", "Cross-attention"):
        expect(page.get_by_role("heading", name=kind, exact=True)).to_be_visible()
    page.get_by_text("Options", exact=True).click()
    switches = page.get_by_role("group", name="Cross-attention", exact=True)
    expect(switches.get_by_role("checkbox")).to_have_count(2)
    expect(page.get_by_role("group", name=re.compile("by position"))).to_have_count(0)
    switches.get_by_label("layer 1, head 2").check()
    expect(page.get_by_text("Heads switched off: 1")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_hidden()


@pytest.mark.parametrize("kind", ["language model", "sentiment", "digits"])
def test_steps_vectors_and_shapes_of_any_run(visit, runs, kind):
    opened = visit("/steps", run=name_of(of_kind(runs, kind)))
    page = opened.page
    expect(page.get_by_role("button", name="5. Mix")).to_be_visible()
    expect(page.get_by_role("tab", name="Token by token")).to_be_hidden()
    expect(page.get_by_label("Its translation")).to_be_hidden()
    page.get_by_role("tab", name="Through the layers").click()
    expect(page.get_by_label("Place")).to_be_visible()
    page.get_by_role("tab", name="Shapes").click()
    expect(page.get_by_text("one item is a batch of 1")).to_be_visible()


@pytest.mark.parametrize(
    ("kind", "unit", "rate", "attention"),
    [
        ("language model", "nats per token", "Target tokens per second", "decoder.self_attention"),
        ("digits", "nats per label", "Labels per second", "encoder.self_attention"),
        ("recurrent", "nats per token", "Target tokens per second", None),
    ],
)
def test_curves_have_the_units_of_the_task(visit, runs, kind, unit, rate, attention):
    name = name_of(runs[kind])
    opened = visit("/runs", runs=name)
    page = opened.page
    expect(page.get_by_role("img", name=rate)).to_be_visible()
    loss = page.get_by_role("img", name="Loss", exact=True)
    expect(loss.get_by_text(unit)).to_be_visible()
    refusal = page.get_by_text(f"{name} has no attention whose entropy could be recorded, and no samples.")
    expect(refusal).to_be_visible(visible=attention is None)
    entropy = page.get_by_role("img", name=f"Entropy of heads, {attention}", exact=True)
    expect(entropy).to_be_visible(visible=attention is not None)
    figure, drawing = loss.bounding_box(), loss.locator("svg.main-svg").first.bounding_box()
    assert drawing["width"] <= figure["width"] + 1
    opened.screenshot(f"studio-runs-{kind.replace(' ', '-')}")
