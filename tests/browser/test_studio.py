"""The studio's pages over a model that the tests train, served by the real program, clicked through."""

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from benchmarks.pages import ADDRESS, start_studio
from regardant.inspection import ScaleHead, intervene

SVG = "{http://www.w3.org/2000/svg}"
TEXT = "The old judge sees the small cat."
CROSS = "decoder.layers.0.cross_attention"


@pytest.fixture(scope="module")
def address(trained) -> Iterator[str]:
    program, at = start_studio(trained().folder)
    yield at
    program.send_signal(signal.SIGINT)
    told = program.communicate(timeout=60)[1]
    assert "Traceback" not in told
    assert program.returncode in (0, 130)


def state_of(page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).fragment).items()}


def saved(page, button) -> ElementTree.Element:
    """The drawing that a button saves: SVG that stands by itself."""
    with page.expect_download() as download:
        button.click()
    assert download.value.suggested_filename.endswith(".svg")
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert "var(--" not in text
    return ElementTree.fromstring(text)


def test_the_first_page_leads_to_the_others(visit):
    opened = visit("/")
    page = opened.page
    expect(page.get_by_role("heading", name="Your runs (1)")).to_be_visible()
    story = page.get_by_role("list", name="Timeline").get_by_role("listitem")
    expect(story.first).to_contain_text("2014")
    expect(story.filter(has_text="Vaswani")).to_contain_text("regardant train story/5-transformer")
    opened.screenshot("studio-home")
    for name, heading in (("Runs", "Runs"), ("Look inside",) * 2, ("Step through",) * 2, ("Lab", "Lab")):
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        expect(page.get_by_role("link", name=name, exact=True)).to_have_attribute("aria-current", "page")


def test_curves_samples_and_entropies_of_a_run(visit, trained):
    opened = visit("/runs")
    page = opened.page
    expect(page.get_by_label(f"Show {trained().folder.as_posix()}")).to_be_checked()
    titles = ["Loss", "BLEU of greedy translations", "Learning rate", "Gradient norm", "Target tokens per second"]
    for title in [*titles, "Entropy of heads, decoder.cross_attention"]:
        expect(page.get_by_role("img", name=title, exact=True)).to_be_visible()
    expect(page.get_by_role("img", name="Loss", exact=True).locator(".scatterlayer path.js-line")).to_have_count(2)
    expect(page.locator("table.samples tbody tr")).to_have_count(2)
    drawing = saved(page, page.get_by_role("button", name="Save this picture: Loss"))
    assert drawing.tag == f"{SVG}svg"
    opened.screenshot("studio-runs")
    page.get_by_role("radio", name="Minutes").check()
    page.get_by_role("radio", name="encoder.self_attention").check()
    page.get_by_role("radio", name="Item 2").check()
    expect(page.get_by_role("img", name="Entropy of heads, encoder.self_attention", exact=True)).to_be_visible()
    told = state_of(page)
    assert (told["axis"], told["kind"], told["sample"]) == ("Minutes", "encoder.self_attention", "1")


def test_curves_grow_while_another_process_writes(visit, tmp_path, trained):
    folder = tmp_path / "live"
    folder.mkdir()
    (folder / "run.yaml").write_bytes((trained().folder / "run.yaml").read_bytes())
    lines = (trained().folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    second = tmp_path / "second"
    second.mkdir()
    for name in ("run.yaml", "metrics.jsonl"):
        (second / name).write_bytes((trained().folder / name).read_bytes())
    metrics = folder / "metrics.jsonl"
    metrics.write_text("".join(lines[:5]))
    program, at = start_studio(tmp_path)
    try:
        opened = visit("/runs", served=at, runs=f"{folder.as_posix()}\n{second.as_posix()}")
        page = opened.page
        row = page.locator("table.runs tbody tr").first
        before = json.loads(lines[4])["update"]
        expect(row.locator("td").nth(4)).to_have_text(str(before))
        expect(page.get_by_role("img", name="Loss", exact=True).locator(".scatterlayer path.js-line")).to_have_count(3)
        metrics.write_text("".join(lines[:20]))
        expect(row.locator("td").nth(4)).to_have_text(str(json.loads(lines[19])["update"]))
        opened.screenshot("studio-runs-compared")
        page.get_by_label(f"Show {second.as_posix()}").uncheck()
        assert state_of(page)["runs"] == folder.as_posix()
    finally:
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=60)
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    opened.complaints[:] = [one for one in opened.complaints if "ERR_CONNECTION_REFUSED" not in one]


def test_a_sentence_is_translated_and_looked_at(visit, trained):
    opened = visit("/look", text=TEXT)
    page = opened.page
    expected = trained().translate([TEXT])[0].text
    expect(page.locator(".translation")).to_have_text(expected)
    expect(page.locator(".figure > svg")).to_be_visible()
    opened.screenshot("studio-translate")
    page.get_by_role("button", name=re.compile("^Cross-attention, Layer 1, head 1: ")).click()
    expect(page.get_by_role("tab", name="One head")).to_have_attribute("aria-selected", "true")
    expect(page.locator("h3").first).to_have_text("Cross-attention, layer 1, head 1")
    page.get_by_role("radio", name="Cross-attention, layer 1, head 2").click()
    page.get_by_role("group", name="Query words").get_by_role("button").nth(1).click()
    page.get_by_role("radio", name="Lines").check()
    told = state_of(page)
    assert (told["kind"], told["layer"], told["head"], told["form"], told["word"]) == (
        "Cross-attention",
        "0",
        "1",
        "Lines",
        "1",
    )
    saved(page, page.get_by_role("button", name="Save this picture"))
    again = visit("/look", **told).page
    expect(again.locator("h3").first).to_have_text("Cross-attention, layer 1, head 2")
    expect(again.locator(".readout")).to_contain_text("looks at")


def test_a_changed_source_shows_what_changed(visit, trained):
    opened = visit("/look", text=TEXT)
    page = opened.page
    first, second = (one.text for one in trained().translate([TEXT, "The old judge sees the red tree."]))
    expect(page.locator(".translation")).to_have_text(first)
    page.get_by_label("Text", exact=True).fill("The old judge sees the red tree.")
    page.keyboard.press("Enter")
    expect(page.locator(".translation")).to_have_text(second)
    if first != second:
        expect(page.get_by_text(f"before: {first}")).to_be_visible()
        marked = page.locator(".translation mark").all_inner_texts()
        assert marked and set(marked) <= set(second.split())
    assert state_of(page)["text"] == "The old judge sees the red tree."


def test_heads_are_switched_off(visit, trained):
    opened = visit("/look", text=TEXT)
    page = opened.page
    with intervene(trained().translator.model, ScaleHead(CROSS, 0), ScaleHead(CROSS, 1)):
        expected = trained().translate([TEXT])[0].text
    page.get_by_text("Options", exact=True).click()
    expect(page.get_by_text("Heads switched off: none")).to_be_visible()
    group = page.get_by_role("group", name="Cross-attention", exact=True)
    for head in (0, 1):
        group.get_by_label(f"layer 1, head {head + 1}").check()
        expect(page.get_by_text(f"Heads switched off: {head + 1}")).to_be_visible()
    expect(page.locator(".translation")).to_have_text(expected)
    opened.screenshot("studio-heads-off")
    assert state_of(page)["off"] == f"{CROSS}:0,{CROSS}:1"
    page.get_by_role("button", name="Switch all on").click()
    expect(page.locator(".translation")).to_have_text(trained().translate([TEXT])[0].text)


def test_an_answer_that_is_not_the_model_s_own_is_called_so(visit, trained):
    opened = visit("/look", text=TEXT, target="Le chat.", off=f"{CROSS}:0")
    page = opened.page
    expect(page.locator(".translation")).to_have_text("Le chat.")
    expect(page.get_by_text("This is your own translation, not the model's.")).to_be_visible()
    expect(page.get_by_text("With 1 head switched off.")).to_be_visible()
    opened.screenshot("studio-own-translation")
    expect(page.get_by_label("Its translation")).to_have_value("Le chat.")  # the options are open
    expect(page.get_by_text("Heads switched off: 1")).to_be_visible()
    page.get_by_role("button", name="Switch all on").click()
    expect(page.get_by_text("switched off.")).to_have_count(0)
    page.route(
        "**/api/examples*", lambda route: route.fulfill(json=[{"item": "The cat sees the dog.", "picture": None}])
    )
    page.reload()
    page.get_by_role("group", name="Examples").get_by_role("button").click()
    expect(page.get_by_text("This is your own translation")).to_have_count(0)
    expect(page.get_by_label("Its translation")).to_have_value("")
    expect(page.locator(".translation")).to_have_text(trained().translate(["The cat sees the dog."])[0].text)
    assert "target" not in state_of(page)


def test_the_beam_tree_and_the_alignment(visit, trained):
    opened = visit("/look", text=TEXT, tab="Beam search", beam=3)
    page = opened.page
    best = trained().translate([TEXT], beam_size=3)[0]
    expect(page.locator("g.candidate.best")).to_have_count(len(best.tokens) + 1)
    last = page.locator("g.candidate.best").last
    last.focus()
    expect(page.locator(".readout")).to_contain_text(f"score {best.score:.3f}")
    opened.screenshot("studio-beam")
    saved(page, page.get_by_role("button", name="Save this picture"))
    page.get_by_role("tab", name="Alignment").click()
    expect(page.locator(".figure > svg")).to_be_visible()
    page.get_by_role("group", name="Words of the answer").get_by_role("button").first.click()
    expect(page.locator("p[aria-live]")).to_contain_text("comes from")
    opened.screenshot("studio-alignment")


def test_markup_that_is_typed_stays_text(visit):
    evil = "</script><img src=x onerror=alert(1)> <b>cat</b>"
    opened = visit("/look", text=evil)
    page = opened.page
    expect(page.locator(".translation")).to_be_visible()
    expect(page.get_by_label("Text", exact=True)).to_have_value(evil)
    for tab in ("Alignment", "Beam search"):
        page.get_by_role("tab", name=tab).click()
        expect(page.locator(".figure > svg")).to_be_visible()
    assert page.locator("main img").count() == page.locator("main b", has_text=re.compile("^cat$")).count() == 0
    page = visit("/steps", text=evil).page
    expect(page.get_by_role("button", name="5. Mix")).to_be_visible()
    assert page.locator("main img").count() == page.locator("main b", has_text=re.compile("^cat$")).count() == 0


def test_the_five_steps(visit):
    opened = visit("/steps", text=TEXT, attention="decoder.layers.0.self_attention", head=1, query=2)
    page = opened.page
    for name in ("1. Project", "2. Score", "3. Scale and mask", "4. Softmax", "5. Mix"):
        expect(page.get_by_role("button", name=name)).to_be_visible()
    page.get_by_text("How one component of the query is computed").click()
    opened.screenshot("studio-five-steps")
    page.get_by_role("combobox", name="Attention").select_option("Cross-attention, layer 1")
    page.get_by_role("button", name="3. Scale and mask").click()
    expect(page.get_by_text("No key is masked for this query.")).to_be_visible()
    page.get_by_role("radio", name="2", exact=True).check()
    page.get_by_role("group", name="Query word").get_by_role("button").nth(3).click()
    expect(page.get_by_role("radio", name="2", exact=True)).to_be_checked()
    expect(page).to_have_url(re.compile("query=3"))
    told = state_of(page)
    assert (told["attention"], told["head"]) == (CROSS, "1")
    page.get_by_role("radio", name="All words at once").check()
    saved(page, page.get_by_role("button", name="Save this picture").nth(1))


def test_the_flow_plays_and_is_scrubbed(visit):
    page = visit("/steps", text=TEXT, attention=CROSS, query=1).page
    slider = page.get_by_role("slider", name="Time")
    page.get_by_role("button", name="Pause").click()
    before = int(slider.input_value())
    page.get_by_role("button", name="Play").click()
    expect(slider).not_to_have_value(str(before))
    page.get_by_role("button", name="Pause").click()
    slider.press("Home")
    assert state_of(page)["time"] == "0.00"
    expect(page.locator(".flow-score").first).to_be_empty()
    slider.press("End")
    expect(page.get_by_role("button", name="5. Mix")).to_have_attribute("aria-current", "step")
    again = visit("/steps", **state_of(page)).page
    expect(again.get_by_role("button", name="5. Mix")).to_have_attribute("aria-current", "step")


def test_who_wants_no_motion_sees_the_end(visit):
    page = visit("/steps", options={"reduced_motion": "reduce"}, text=TEXT).page
    expect(page.get_by_role("button", name="5. Mix")).to_have_attribute("aria-current", "step")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_two_heads_are_compared(visit):
    opened = visit("/look", text=TEXT, tab="Compare")
    page = opened.page
    right = page.get_by_role("region", name="Right")
    expect(right.locator(".figure > svg")).to_be_visible()
    right.get_by_role("combobox", name="Head").select_option("Encoder self-attention, layer 1, head 1")
    expect(right.get_by_role("img", name=re.compile("^Encoder self-attention, layer 1, head 1"))).to_be_visible()
    expect(right.get_by_text(re.compile(r"^Encoder self-attention, layer 1, head 1 .*%\)\.$"))).to_be_visible()
    right.get_by_label("Item").fill("The red tree.")
    right.get_by_label("Item").press("Enter")
    expect(right.get_by_role("img", name=re.compile("The red tree"))).to_be_visible()
    assert state_of(page)["head2"] == "0.0.0" and state_of(page)["text2"] == "The red tree."


def test_words_never_seen_are_noted_and_known_ones_are_offered(visit):
    page = visit("/look", text="The Zyzzyva.").page
    expect(page.get_by_role("note")).to_contain_text("“Zyzzyva” is not in the training text")
    page.get_by_text("Known words").click()
    page.get_by_label("Words that begin with").fill("judg")
    page.get_by_role("group", name="Words, scrolls").get_by_role("button", name="judge", exact=True).click()
    expect(page.get_by_label("Text", exact=True)).to_have_value("The Zyzzyva. judge")


def test_a_question_that_takes_long_says_so_and_can_be_given_up(visit):
    page = visit("/look", text=TEXT).page
    expect(page.locator(".translation")).to_be_visible()
    page.route("**/api/look", lambda route: None)  # never answered
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("status")).to_contain_text(re.compile(r"reads the item *0\.[3-9] s"))
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status")).to_be_hidden()
    expect(page.locator("[aria-busy]")).to_have_count(0)


@pytest.mark.parametrize("path", ["/look", "/steps"])
def test_a_run_that_takes_long_to_open_can_be_given_up(visit, path):
    """Its answer comes all the same, but nothing is asked about it."""
    opened = visit("/lab")
    page, waiting, asked = opened.page, [], []
    page.route("**/api/examples*", lambda route: waiting.append(route))
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    with page.expect_request("**/api/examples*"):
        page.goto(f"{ADDRESS.match(opened.address)[0]}{path}#text=The+cat")
    expect(page.get_by_role("status")).to_contain_text("Opening")
    page.get_by_role("button", name="Cancel").click()
    (opening,) = waiting
    with page.expect_response("**/api/examples*"):
        opening.fulfill(response=opening.fetch())
    page.wait_for_timeout(500)
    assert {one for one in asked if one.startswith("/api/")} == {"/api/runs", "/api/examples"}
    expect(page.get_by_role("status")).to_be_hidden()
    page.get_by_role("button", name="Show").click()
    if path == "/look":
        expect(page.locator(".translation")).to_be_visible()
    else:
        expect(page.get_by_role("tabpanel", name="Five steps").locator("svg").first).to_be_visible()


def test_an_address_that_is_no_page_and_an_empty_studio_say_what_to_do(visit, tmp_path):
    opened = visit("/nope")
    expect(opened.page.get_by_text("The studio has no page at /nope.")).to_be_visible()
    opened.complaints.clear()  # Chromium writes the status 404
    program, at = start_studio(tmp_path)
    try:
        for page in ("/look", "/steps", "/runs", "/"):
            opened = visit(page, served=at)
            expect(opened.page.get_by_text("regardant demo", exact=True).first).to_be_visible()
            expect(opened.page.get_by_role("tab", name="Five steps")).to_be_hidden()
    finally:
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=60)


def test_writing_token_by_token(visit):
    opened = visit("/steps", tab="Token by token", text=TEXT)
    page = opened.page
    expect(page.get_by_text("is the likeliest")).to_be_visible()
    page.get_by_role("button", name="Play").click()
    expect(page).to_have_url(re.compile("at=[2-9]"))
    page.get_by_role("button", name="Pause").click()
    opened.screenshot("studio-writing")
    assert int(state_of(page)["at"]) >= 2
    page.get_by_label("Its translation").fill("Le vieux juge voit le petit chat.")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("radio", name="With the given translation").check()
    expect(page.get_by_text("The next token of the translation is “Le”")).to_be_visible()
    page.get_by_label("Token", exact=True).press("ArrowRight")
    expect(page.get_by_text("The next token of the translation is “vieux”")).to_be_visible()


@pytest.mark.parametrize("status", [200, 422])
def test_an_answer_that_comes_late_leaves_the_tab_that_is_open_now(visit, status):
    opened = visit("/steps", tab="Shapes", text=TEXT)
    page, waiting = opened.page, []
    expect(page.get_by_text("one item is a batch of 1")).to_be_visible()
    page.route("**/api/view", lambda route: waiting.append(route))
    page.get_by_role("tab", name="Token by token").click()
    expect(page.get_by_role("status")).to_be_visible()
    page.get_by_role("tab", name="Shapes").click()
    expect(page.get_by_text("one item is a batch of 1")).to_be_visible()
    (question,) = waiting
    answer = question.fetch()
    with page.expect_response("**/api/view"):
        question.fulfill(response=answer) if status == 200 else question.fulfill(status=status, json={"detail": "late"})
    page.wait_for_timeout(500)
    expect(page.get_by_text("one item is a batch of 1")).to_be_visible()
    expect(page.get_by_role("radio", name="By itself")).to_have_count(0)
    expect(page.get_by_role("alert")).to_be_hidden()
    opened.complaints[:] = [one for one in opened.complaints if "422" not in one]


def test_what_passes_the_layers(visit):
    opened = visit("/steps", tab="Through the layers", text=TEXT, target="Le vieux juge voit le petit chat.")
    page = opened.page
    written = page.get_by_role("img", name="Target: norm of vectors")
    expect(written).to_be_visible()
    written.locator("g.choosable", has_text="layer 1, norm after feed-forward").click()
    place = page.get_by_role("combobox", name="Place")
    expect(place).to_have_value("decoder.layers.0.after_feed_forward.norm")
    page.get_by_role("radio", name="after").check()
    page.get_by_role("img", name="Decoder, layer 1, norm after feed-forward: after").locator(
        '[data-row="2"] text'
    ).click()
    for quantity in ("before", "after"):
        expect(page.get_by_role("img", name=f"{quantity}: vieux · mean ")).to_be_visible()
    opened.screenshot("studio-streams")
    told = state_of(page)
    assert (told["quantity"], told["token"]) == ("after", "2")
    saved(page, page.get_by_role("button", name="Save this picture").last)
    place.select_option("encoder.final_norm")
    page.get_by_role("combobox", name="Element").select_option("2: old")
    expect(page.get_by_role("img", name="after: old · mean ")).to_be_visible()


def test_what_passes_the_layers_at_an_address_of_nonsense(visit):
    opened = visit("/steps", tab="Through the layers", text=TEXT, quantity="toString", token="-4")
    expect(opened.page.get_by_role("combobox", name="Element")).to_have_value("1: <sos>")


def test_masks_are_put_together(visit):
    opened = visit("/steps", tab="Masks")
    page = opened.page
    expect(page.get_by_text("causal()", exact=True)).to_be_visible()
    page.get_by_label("Window: tokens to each side").fill("2")
    page.get_by_label("Padding tokens").fill("3")
    expect(page.get_by_text("window(10, 2)")).to_be_visible()
    expect(page.get_by_text("padding(torch.arange(10)")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Mask: .*"))).to_have_count(5)
    opened.screenshot("studio-masks")
    page.get_by_label("Custom pairs (from-to)").fill("0-99")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("'0-99' is out of range for 10 tokens: use 1 to 10")
    opened.complaints[:] = [one for one in opened.complaints if "422" not in one]


def test_an_earlier_mask_does_not_replace_a_later_one(visit):
    page, waiting = visit("/steps", tab="Masks").page, []
    expect(page.get_by_text("causal()", exact=True)).to_be_visible()
    page.route("**/api/mask", lambda route: waiting.append(route) if not waiting else route.continue_())
    with page.expect_request("**/api/mask"):
        page.get_by_label("Window: tokens to each side").fill("2")
    page.get_by_label("Window: tokens to each side").fill("3")
    expect(page.get_by_text("window(10, 3)")).to_be_visible()
    (first,) = waiting
    with page.expect_response("**/api/mask"):
        first.fulfill(response=first.fetch())
    page.wait_for_timeout(300)
    expect(page.get_by_text("window(10, 3)")).to_be_visible()


def test_shapes_open_and_close(visit):
    opened = visit("/steps", tab="Shapes", text=TEXT)
    page = opened.page
    layers = page.get_by_role("button", name=re.compile(r"^encoder\.layers:"))
    expect(layers).to_have_attribute("aria-expanded", "false")
    layers.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=re.compile(r"^encoder\.layers:"))).to_have_attribute("aria-expanded", "true")
    first = page.get_by_role("button", name=re.compile(r"^encoder\.layers\.0:"))
    first.click(position={"x": 40, "y": 12})
    expect(page.get_by_role("button", name=re.compile(r"^encoder\.layers\.0\.self_attention:"))).to_be_visible()
    opened.screenshot("studio-shapes")
    assert "encoder.layers.0" in state_of(page)["open"]
    saved(page, page.get_by_role("button", name="Save this picture"))


CONTRASTS = """
  const { strips } = await import("/static/steps/strips.js");
  const colour = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const luminance = (rgb) => {
    const linear = (one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb.map((one) => linear(one / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const page = colour(getComputedStyle(document.body).backgroundColor);
  const figure = document.createElement("div");
  figure.className = "figure";
  document.querySelector("main").replaceChildren(figure);
  const values = Array.from({ length: 400 }, (_, i) => (i - 199.5) / 199.5);
  const rows = Array.from({ length: 25 }, (_, row) => ({ name: "row", values: values.slice(16 * row, 16 * row + 16) }));
  figure.append(strips(rows, "Numbers", { largest: 1 }));
  return [...figure.querySelectorAll("rect.strip")].map((cell) => {
    const text = cell.parentElement.querySelector("text");
    const style = getComputedStyle(cell);
    const share = Number(style.fillOpacity);
    const under = colour(style.fill).map((one, i) => share * one + (1 - share) * page[i]);
    const [low, high] = [luminance(under), luminance(colour(getComputedStyle(text).fill))].sort((a, b) => a - b);
    return [text.textContent, (high + 0.05) / (low + 0.05)];
  });
"""
"""Contrast of the numbers from -1 to 1 with their cells, by WCAG 2."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_number_is_legible_on_its_cell(visit, scheme):
    opened = visit("/steps", tab="Masks", options={"color_scheme": scheme})
    expect(opened.page.get_by_text("causal()", exact=True)).to_be_visible()
    found = opened.page.evaluate(f"async () => {{{CONTRASTS}}}")
    opened.screenshot(f"studio-strips-{scheme}")
    assert len(found) == 400 and {"-1.00", "1.00"} <= {text for text, _ in found}
    assert [one for one in found if one[1] < 4.5] == []


@pytest.mark.parametrize("page", ["/runs", "/look", "/steps"])
def test_every_page_in_the_dark(visit, page):
    opened = visit(page, options={"color_scheme": "dark"})
    expect(opened.page.locator("svg").first).to_be_visible()
    opened.screenshot(f"studio-dark{page.replace('/', '-')}")
    dark = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark == "rgb(21, 23, 28)"
    opened.page.get_by_role("button", name="Theme: auto").click()
    expect(opened.page.get_by_role("button", name="Theme: light")).to_be_visible()
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(253, 252, 249)"


@pytest.mark.parametrize("page", ["/runs", "/look", "/steps"])
def test_an_address_of_nonsense_shows_the_page_as_it_begins(visit, page):
    nonsense = {
        "run": "/etc/passwd",
        "runs": "x,y",
        "tab": "toString",
        "kind": "constructor",
        "layer": "77",
        "form": "z",
    }
    nonsense |= {"axis": "q", "head": "-4", "word": "1e9", "beam": "no", "at": "-1", "open": "%", "sample": "9"}
    opened = visit(page, **nonsense)
    expect(opened.page.locator("svg").first).to_be_visible()
    expect(opened.page.get_by_role("alert")).to_contain_text("There is no ")


def test_ctrl_c_ends_it_at_once_and_quietly(tmp_path):
    program, at = start_studio(tmp_path)
    assert ADDRESS.fullmatch(at)
    began = time.monotonic()
    os.killpg(program.pid, signal.SIGINT)
    told = program.communicate(timeout=60)[1]
    assert time.monotonic() - began < 20
    assert program.returncode in (0, 130) and told == ""
