import re
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import expect

from regardant.pictures import AttentionPicture, Layout, attention_page, in_notebook
from regardant.tasks.chosen_heads import ChosenHeads

SVG = "{http://www.w3.org/2000/svg}"
KINDS = ["Encoder self-attention", "Decoder self-attention", "Cross-attention"]


def attention(num_layers, num_heads, rows, columns, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(columns, 0.2), (num_layers, num_heads, rows))


def sentence(num_layers=2, num_heads=2, length=6):
    """Pieces of words, two and one in turn, in three kinds of attention."""
    pieces = [f"p{i}" for i in range(length)]
    units = [(f"word{i}", 2 - i % 2) for i in range(length) if sum(2 - j % 2 for j in range(i + 1)) <= length]
    units += [("end", 1)] * (length - sum(count for _, count in units))
    shape = (num_layers, num_heads, length, length)
    return [
        AttentionPicture(
            "A sentence", pieces, pieces, attention(*shape, seed), kind=kind, source_units=units, target_units=units
        )
        for seed, kind in enumerate(KINDS)
    ]


def as_read(weights):
    """As the page has them, which knows a weight as a fraction of the largest of its row, in a byte."""
    weights = np.asarray(weights, float)
    largest = weights.max(-1, keepdims=True).astype(np.float32).astype(float)
    return np.float32(np.rint(255 * weights / largest) * (largest / 255))


def percent(weight):
    """Whole percent, with a decimal below 10 %."""
    digits = 1 if 0 < weight < 0.0995 else 0
    return f"{np.floor(100 * float(weight) * 10**digits + 0.5) / 10**digits:.{digits}f}%"


def shown_percent(weights):
    return [[percent(weight) for weight in row] for row in as_read(weights)]


def table_of(page):
    return [[cell.inner_text() for cell in row.locator("td").all()] for row in page.locator("tbody tr").all()]


@pytest.fixture(scope="module")
def inspected(trained):
    return trained().inspect("The old judge sees the small cat.", "Le vieux juge voit le petit chat.")


def in_pieces(sentences, **more):
    """A page that opens with pieces."""
    return attention_page(sentences, in_words=False, **more)


def test_a_page_opens_from_disk_with_the_network_cut(open_page, inspected):
    opened = open_page(inspected.page(ChosenHeads(unit="pieces")))
    expect(opened.page.get_by_role("heading", name=inspected.source)).to_be_visible()
    expect(opened.page.locator(".figure > svg")).to_be_visible()
    expect(opened.page.locator("h3", has_text="Cross-attention, layer 1, mean of heads")).to_be_visible()
    opened.screenshot("inspected")


def test_every_head_s_table_has_the_numbers_of_the_capture(open_page, inspected):
    page = open_page(inspected.page(ChosenHeads(unit="pieces"))).page
    page.get_by_text("As a table").click()
    for picture in inspected.pictures:
        for head in range(picture.weights.shape[1]):
            page.get_by_role("radio", name=f"{picture.kind}, layer 1, head {head + 1}").click()
            caption = f"{picture.kind}, layer 1, head {head + 1}, percent of each row"
            expect(page.get_by_role("table", name=caption)).to_be_visible()
            assert table_of(page) == shown_percent(picture.weights[0, head])
            assert page.locator("thead th").all_inner_texts() == picture.source
            assert page.locator("tbody th").all_inner_texts() == picture.target


def test_the_cells_of_the_map_are_as_dark_as_their_weights(open_page):
    pictures = sentence()
    page = open_page(in_pieces([pictures], title="x")).page
    page.get_by_role("radio", name="Encoder self-attention, layer 2, head 1").click()
    expect(page.get_by_role("img", name=re.compile("Encoder self-attention, layer 2, head 1"))).to_be_visible()
    shown = page.locator(".cell").evaluate_all(
        "cells => cells.map((cell) => Number(cell.getAttribute('fill-opacity')))"
    )
    np.testing.assert_allclose(shown, pictures[0].weights[1, 0].flatten(), atol=0.5 / 255 + 1e-3)


def test_clicking_a_word_says_where_it_looks(open_page):
    pictures = sentence()
    opened = open_page(in_pieces([pictures], title="x"))
    page = opened.page
    page.get_by_role("radio", name="Cross-attention, layer 1, head 2").click()
    page.get_by_role("button", name="p2", exact=True).click()
    row = pictures[2].weights[0, 1, 2]
    best = int(row.argmax())
    readout = page.locator(".readout")
    expect(readout.locator("p")).to_have_text("p2 looks at")
    expect(readout.locator("li").first).to_have_text(f"p{best}{shown_percent([row])[0][best]}")
    expect(page.get_by_role("button", name="p2", exact=True)).to_have_attribute("aria-pressed", "true")
    opened.screenshot("word")
    page.keyboard.press("Escape")
    expect(readout).to_contain_text("Point at a word")


def test_pieces_are_gathered_to_words(open_page):
    pictures = sentence()
    page = open_page(in_pieces([pictures], title="x")).page
    page.get_by_role("radio", name="Cross-attention, layer 2, head 2").click()
    page.get_by_text("As a table").click()
    page.get_by_role("radio", name="Words", exact=True).check()
    expect(page.locator("thead th")).to_have_text([word for word, _ in pictures[2].source_units])
    edges = np.cumsum([0] + [count for _, count in pictures[2].source_units])[:-1]
    counts = np.array([count for _, count in pictures[2].target_units])[:, None]
    read = as_read(pictures[2].weights[1, 1])
    merged = np.add.reduceat(np.add.reduceat(read, edges, 0) / counts, edges, 1)
    shown = [[float(cell.removesuffix("%")) for cell in row] for row in table_of(page)]
    np.testing.assert_allclose(shown, 100 * merged, atol=0.51)


def test_a_page_opens_with_words(open_page):
    pictures = sentence()
    page = open_page(attention_page([pictures], title="x")).page
    expect(page.get_by_role("radio", name="Words", exact=True)).to_be_checked()
    expect(page.get_by_role("button", name=pictures[2].target_units[0][0], exact=True)).to_be_visible()


def test_the_heads_can_be_walked_by_keyboard(open_page):
    page = open_page(in_pieces([sentence()], title="x")).page
    page.get_by_role("radio", name="Cross-attention, layer 1, mean of heads").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    chosen = page.get_by_role("radio", name="Cross-attention, layer 2, head 1")
    expect(chosen).to_be_focused()
    expect(chosen).to_have_attribute("aria-checked", "true")
    assert page.locator("[role=radio][aria-checked=true]").count() == 1
    expect(page.locator("h3").first).to_have_text("Cross-attention, layer 2, head 1")


def test_what_is_shown_is_in_the_address_and_comes_back_from_it(open_page):
    html = in_pieces([sentence(), sentence(3)], title="x")
    page = open_page(html).page
    page.get_by_role("radio", name="2. A sentence").check()
    page.get_by_role("radio", name="Decoder self-attention, layer 3, head 1").click()
    page.get_by_role("radio", name="Lines").check()
    page.get_by_role("button", name="p3", exact=True).click()
    told = {name: values[0] for name, values in parse_qs(urlsplit(page.url).fragment).items()}
    assert told == {
        "sentence": "2",
        "kind": "Decoder self-attention",
        "layer": "2",
        "head": "0",
        "form": "Lines",
        "unit": "Pieces",
        "word": "3",
    }
    again = open_page(html, f"#{urlsplit(page.url).fragment}").page
    expect(again.locator("h3").first).to_have_text("Decoder self-attention, layer 3, head 1")
    expect(again.locator(".figure path.line").first).to_be_visible()
    expect(again.locator(".readout")).to_contain_text("p3 looks at")


@pytest.mark.parametrize(
    "fragment", ["#sentence=9&kind=x&layer=77&head=-4&form=toString&unit=constructor&word=1e9", "#%", "#kind"]
)
def test_an_address_of_nonsense_shows_the_page_as_it_begins(open_page, fragment):
    page = open_page(in_pieces([sentence()], title="x"), fragment).page
    expect(page.locator("h3").first).to_have_text("Cross-attention, layer 2, mean of heads")
    expect(page.locator(".figure > svg")).to_be_visible()


def test_a_picture_is_saved_as_svg_that_brings_its_colours(open_page):
    page = open_page(in_pieces([sentence()], title="x")).page
    for form, kind in (("Heat map", "rect"), ("Lines", "path")):
        page.get_by_role("radio", name=form).check()
        with page.expect_download() as downloading:
            page.get_by_role("button", name="Save this picture").click()
        assert downloading.value.suggested_filename == "cross-attention-layer-2-mean-of-heads.svg"
        text = downloading.value.path().read_text(encoding="utf-8")
        root = ElementTree.fromstring(text)
        assert len(list(root.iter(f"{SVG}{kind}"))) > 10
        assert "var(" not in text and "rgb(29, 79, 158)" in text


def test_markup_in_a_word_stays_text(open_page):
    words = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&lt;"]
    picture = AttentionPicture(words[0], words, words, attention(1, 1, 3, 3), note=words[1])
    page = open_page(in_pieces([[picture]], title=words[1], summary=[(words[0], words[2])])).page
    assert page.get_by_role("button", name=words[0], exact=True).inner_text() == words[0]
    assert page.locator("img, section script").count() == 0
    assert page.locator("h1").inner_text() == words[1]


def test_six_layers_eight_heads_three_kinds_and_sixty_tokens_are_drawn(open_page):
    opened = open_page(in_pieces([sentence(6, 8, 60)], title="x"))
    expect(opened.page.locator(".figure > svg .cell").first).to_be_visible()
    opened.page.wait_for_function("[...document.querySelectorAll('.heads canvas')].some((one) => one.width > 100)")
    opened.screenshot("sixty")


def test_five_hundred_tokens_do_not_freeze_the_page(open_page):
    opened = open_page(in_pieces([sentence(3, 4, 500)], title="x"))
    page = opened.page
    page.wait_for_selector(".figure > svg image")
    page.evaluate(
        "() => { window.longest = 0; let last = performance.now(); const tick = () => { const now = performance.now(); "
        "window.longest = Math.max(window.longest, now - last); last = now; requestAnimationFrame(tick); }; tick(); }"
    )
    for label in ("Decoder self-attention, layer 3, head 4", "Cross-attention, layer 1, mean of heads"):
        page.get_by_role("radio", name=label).click()
        expect(page.locator("h3").first).to_have_text(label)
    page.get_by_text("As a table").click()
    expect(page.locator("tbody tr")).to_have_count(500)
    page.get_by_role("radio", name="Lines").check()
    page.wait_for_selector(".figure path.line")
    page.get_by_role("button", name="p250", exact=True).click()
    expect(page.locator(".readout")).to_contain_text("p250 looks at")
    assert page.evaluate("window.longest") < 2000
    opened.screenshot("five-hundred")


@pytest.mark.parametrize(("scheme", "ink"), [("light", "rgb(29, 79, 158)"), ("dark", "rgb(138, 186, 255)")])
def test_colours_follow_light_and_dark(open_page, scheme, ink):
    opened = open_page(in_pieces([sentence()], title="x"), color_scheme=scheme)
    page = opened.page
    assert page.locator(".cell").first.evaluate("cell => getComputedStyle(cell).fill") == ink
    page.wait_for_function("document.querySelector('.heads canvas').width > 100")
    opened.screenshot(scheme)


def test_a_notebook_s_frame_shows_the_page(open_page):
    page = open_page(f"<!doctype html><title>notebook</title>{in_notebook(in_pieces([sentence()], title='x'))}").page
    frame = page.frame_locator("iframe")
    frame.get_by_role("radio", name="Cross-attention, layer 1, head 2").click()
    expect(frame.locator("h3").first).to_have_text("Cross-attention, layer 1, head 2")
    fits = "([frame]) => frame.clientHeight === frame.contentDocument.documentElement.scrollHeight"
    fits += " && frame.clientHeight === Math.ceil(frame.contentDocument.body.getBoundingClientRect().height)"
    for width in (1200, 600):
        page.set_viewport_size({"width": width, "height": 700})
        page.wait_for_function(f"({fits})(document.querySelectorAll('iframe'))")
    assert page.locator("iframe").evaluate("frame => frame.clientHeight") > 700


PICTURE = (
    "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='3' height='2'><rect width='2' height='1'/></svg>"
)
DARKEST = 0.75
"""Opacity of the largest weight."""


def item(beside=(), picture=PICTURE):
    """An item of six elements on a grid, and a sentence that looks at it."""
    cells = [f"row {row}, column {column}" for row in (1, 2) for column in (1, 2, 3)]
    layout, labels = Layout(cells, 2, 3, picture), [*beside, *cells]
    own = AttentionPicture(
        "a.png",
        labels,
        labels,
        attention(2, 2, len(labels), len(labels)),
        kind="Encoder self-attention",
        source_layout=layout,
        target_layout=layout,
    )
    words = ["a", "black", "bar"]
    crossing = attention(2, 2, 3, len(labels), 1)
    return [own, AttentionPicture("a.png", labels, words, crossing, kind="Cross-attention", source_layout=layout)]


def shades(page):
    return page.locator(".figure .lit").evaluate_all(
        "all => all.map((one) => Number(one.getAttribute('fill-opacity')))"
    )


def in_order(weights, beside):
    """As the figure has them: the grid first, and opacities beside the largest."""
    return DARKEST * np.roll(weights, -beside) / weights.max()


@pytest.mark.parametrize("picture", [PICTURE, None])
def test_an_item_is_drawn_on_its_grid_with_the_attention_of_a_chosen_element(open_page, picture):
    own, _ = item(picture=picture)
    opened = open_page(in_pieces([[own]], title="x"))
    page = opened.page
    expect(page.get_by_role("radio", name="Grid")).to_be_checked()
    expect(page.locator(".figure .lit")).to_have_count(6)
    mean = own.weights[1].mean(0)
    np.testing.assert_allclose(shades(page), in_order(mean.mean(0), 0), atol=0.02)
    expect(page.locator(".readout")).to_contain_text("The mean of all rows")
    assert page.locator(".item-grid img").count() == page.locator(".figure image").count() == (picture is not None)
    page.get_by_role("button", name="row 2, column 1").click()
    np.testing.assert_allclose(shades(page), in_order(mean[3], 0), atol=0.02)
    expect(page.locator(".readout")).to_contain_text("row 2, column 1 looks at")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    np.testing.assert_allclose(shades(page), in_order(mean[1], 0), atol=0.02)
    opened.screenshot(f"item-{'picture' if picture else 'labels'}")


def graph():
    """A graph of four nodes in a row."""
    names, places = ["a", "b", "c", "d"], [(0, 0), (1, 0), (1, 1), (0, 1)]
    layout = Layout(names, 1, 4, places=places, edges=[(0, 1), (1, 2), (2, 3)])
    return [AttentionPicture("x", names, names, attention(1, 2, 4, 4), source_layout=layout, target_layout=layout)]


def test_a_graph_is_drawn_with_the_attention_of_a_node_on_lines(open_page):
    (own,) = graph()
    opened = open_page(in_pieces([[own]], title="x"))
    page, weights = opened.page, own.weights[0].mean(0)
    lines = page.locator(".figure .weight")
    expect(lines).to_have_count(3)
    np.testing.assert_allclose(shades(page), in_order(weights.mean(0), 0), atol=0.02)
    page.get_by_role("button", name="c", exact=True).click()
    expect(page.locator(".readout")).to_contain_text("c looks at")
    np.testing.assert_allclose(shades(page), in_order(weights[2], 0), atol=0.02)
    found = {one.get_attribute("data-edge"): float(one.get_attribute("stroke-opacity")) for one in lines.all()}
    others = {f"2 {key}": weights[2, key] for key in (0, 1, 3) if weights[2, key] > 0.02}
    assert set(others) <= set(found)
    for edge, weight in others.items():
        assert found[edge] == pytest.approx(weight / weights[2, [0, 1, 3]].max(), abs=0.03)
    page.locator(".figure [data-key='1']").hover()
    expect(page.locator(".readout")).to_contain_text("b looks at")
    opened.screenshot("graph")


def test_an_even_attention_of_a_node_is_drawn_on_lines_to_all_others(open_page):
    names, places = [f"n{number}" for number in range(80)], [(i % 10 / 9, i // 10 / 7) for i in range(80)]
    layout = Layout(names, 1, 80, places=places, edges=[(i, i + 1) for i in range(79)])
    even = np.full((1, 1, 80, 80), 1 / 80)
    own = AttentionPicture("x", names, names, even, source_layout=layout, target_layout=layout)
    page = open_page(in_pieces([[own]], title="x")).page
    page.get_by_role("button", name="n3", exact=True).click()
    expect(page.locator(".readout li").first).to_contain_text(re.compile(r"1\.[23]%$"))
    expect(page.locator(".figure .weight")).to_have_count(79)


@pytest.mark.parametrize("kind", ["graph", "item", "sentence"])
def test_a_picture_drawn_in_a_frame_without_width_is_drawn_again_when_it_has_one(open_page, kind):
    pictures = {"graph": graph, "item": item, "sentence": sentence}[kind]()
    frame = in_notebook(in_pieces([pictures], title="x"))
    page = open_page(f"<!doctype html><title>x</title><div style='width: 1px; overflow: hidden'>{frame}</div>").page
    shown = page.frame_locator("iframe")
    drawing = shown.locator(".figure svg")
    if kind == "sentence":
        shown.get_by_role("radio", name="Lines").evaluate("input => input.click()")
        expect(shown.locator(".figure .line").first).to_be_attached()
    narrow = int(drawing.get_attribute("width"))
    page.locator("div").evaluate("div => (div.style.width = '')")
    expect(drawing).not_to_have_attribute("width", str(narrow))
    assert int(drawing.get_attribute("width")) > narrow > 0


def test_a_class_token_stands_beside_the_grid_and_is_looked_from_first(open_page):
    (own, _) = item(["<class>"])
    opened = open_page(in_pieces([[own]], title="x"))
    page = opened.page
    np.testing.assert_allclose(shades(page), in_order(own.weights[1].mean(0)[0], 1), atol=0.02)
    expect(page.get_by_role("button", name="<class>")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".item-grid button")).to_have_count(6)
    opened.screenshot("item-class-token")


def test_words_look_at_the_elements_of_an_item_and_other_forms_stay(open_page):
    page = open_page(in_pieces([item()], title="x")).page
    page.get_by_role("radio", name="Cross-attention, layer 1, head 2").click()
    page.get_by_role("button", name="black").click()
    np.testing.assert_allclose(shades(page), in_order(item()[1].weights[0, 1, 1], 0), atol=0.02)
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Save this picture").click()
    root = ElementTree.fromstring(downloading.value.path().read_text(encoding="utf-8"))
    assert len([one for one in root.iter(f"{SVG}rect") if one.get("class") == "lit"]) == 6
    page.get_by_role("radio", name="Heat map").check()
    expect(page.locator(".figure .cell")).to_have_count(18)
    assert parse_qs(urlsplit(page.url).fragment)["form"] == ["Heat map"]
    page.get_by_role("radio", name="Encoder self-attention, layer 1, head 2").click()
    expect(page.locator(".figure .cell")).to_have_count(36)


def test_an_even_attention_over_many_elements_has_its_shades_and_shares(open_page):
    layout = Layout([f"patch {number}" for number in range(256)], 16, 16, PICTURE)
    weights = np.random.default_rng(0).dirichlet(np.full(256, 20.0), (1, 2, 256))
    weights[:, :, 5] = np.eye(256)[9]
    own = AttentionPicture("a.png", layout.labels, layout.labels, weights, source_layout=layout, target_layout=layout)
    page = open_page(in_pieces([[own]], title="x")).page
    mean = weights[0].mean(0)
    page.get_by_role("button", name="patch 3", exact=True).click()
    expect(page.locator(".readout")).to_contain_text("patch 3 looks at")
    np.testing.assert_allclose(shades(page), in_order(mean[3], 0), atol=0.005)
    expect(page.locator(".readout li")).to_have_count(5)
    expect(page.locator(".readout li").first).to_have_text(re.compile(r"^patch \d+0\.[5-7]%$"))
    page.get_by_role("button", name="patch 5", exact=True).click()
    expect(page.locator(".readout ol")).to_have_text("patch 9100%")


def test_a_sentence_is_offered_no_grid(open_page):
    page = open_page(in_pieces([sentence()], title="x")).page
    expect(page.get_by_role("radio", name="Heat map")).to_be_checked()
    expect(page.get_by_role("radio", name="Grid")).to_be_hidden()
