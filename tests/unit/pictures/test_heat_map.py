import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from regardant.pictures import AttentionPicture, Matrix, heat_map_svg, matrix_svg
from regardant.pictures.heat_map import MARGIN, SLANT
from regardant.pictures.svg import FONT_SIZE, SHADES, text_width

SVG = "{http://www.w3.org/2000/svg}"
WEIGHTS = np.array([[[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], [[0.1, 0.8, 0.1], [0.5, 0.5, 0.0]]]])
PICTURE = AttentionPicture("A pair", ["the", "black", "cat"], ["chat", "noir"], WEIGHTS, {(2, 0), (1, 1)})


def parts(svg, name):
    return [e for e in ElementTree.fromstring(svg).iter(f"{SVG}rect") if e.get("class") == name]


def test_there_is_a_cell_a_weight_as_opaque_as_the_weight_and_titled_with_both_words():
    cells = parts(heat_map_svg(PICTURE, 0, 1), "cell")
    assert [float(cell.get("fill-opacity")) for cell in cells] == [0.1, 0.8, 0.1, 0.5, 0.5, 0.0]
    titles = [cell.findtext(f"{SVG}title") for cell in cells]
    assert titles[1] == "chat looks at black: 0.80"
    assert titles[5] == "noir looks at cat: 0.00"


def test_without_a_head_the_cells_are_the_mean():
    svg = heat_map_svg(PICTURE, 0, None)
    assert [float(cell.get("fill-opacity")) for cell in parts(svg, "cell")] == [0.4, 0.5, 0.1, 0.3, 0.4, 0.3]
    assert ElementTree.fromstring(svg).findtext(f"{SVG}title") == "A pair: Cross-attention, layer 1, mean of heads"


def test_gold_rings_lie_inside_the_cells_they_mark():
    svg = heat_map_svg(PICTURE, 0, 0)
    cells, rings = parts(svg, "cell"), parts(svg, "gold")
    marked = [cells[0 * 3 + 2], cells[1 * 3 + 1]]
    for cell in marked:
        x, y, side = (float(cell.get(name)) for name in ("x", "y", "width"))
        assert any(
            x <= float(r.get("x"))
            and y <= float(r.get("y"))
            and float(r.get("x")) + float(r.get("width")) <= x + side
            and float(r.get("y")) + float(r.get("height")) <= y + side
            for r in rings
        )
    assert len(rings) == len(marked) + 1  # and the one in the legend


def test_without_gold_links_nothing_speaks_of_them():
    svg = heat_map_svg(AttentionPicture("A pair", PICTURE.source, PICTURE.target, WEIGHTS), 0, 0)
    assert not parts(svg, "gold")
    assert "gold link" not in "".join(ElementTree.fromstring(svg).itertext())


@pytest.mark.parametrize("word", ["</svg>", "<img onerror=x>", "&\"'", "\x00\x1b", "\ud800", "猫", "x" * 80])
def test_any_word_leaves_a_document_that_parses_and_can_be_written(tmp_path, word):
    picture = AttentionPicture(word, [word], [word], np.ones((1, 1, 1, 1)))
    path = tmp_path / "map.svg"
    path.write_text(heat_map_svg(picture, 0, 0), encoding="utf-8")
    root = ElementTree.parse(path).getroot()
    assert len(list(root.iter(f"{SVG}rect"))) == 3  # the page, one cell and the frame


def test_everything_lies_on_the_page():
    root = ElementTree.fromstring(heat_map_svg(PICTURE, 0, 0))
    for rect in root.iter(f"{SVG}rect"):
        assert 0 <= float(rect.get("x")) <= float(rect.get("x")) + float(rect.get("width")) <= float(root.get("width"))
        assert (
            0 <= float(rect.get("y")) <= float(rect.get("y")) + float(rect.get("height")) <= float(root.get("height"))
        )


def test_colours_follow_light_and_dark():
    assert "prefers-color-scheme: dark" in heat_map_svg(PICTURE, 0, 0)


def test_a_head_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="head 2 is not drawn; choose 0 to 1, or the mean of heads"):
        heat_map_svg(PICTURE, 0, 2)


def test_of_many_cells_only_the_shades_are_drawn():
    words = [str(i) for i in range(100)]
    svg = heat_map_svg(AttentionPicture("Long", words, words, np.eye(100)[None, None]), 0, 0)
    root = ElementTree.fromstring(svg)
    assert not parts(svg, "cell")
    (shade,) = (path for path in root.iter(f"{SVG}path") if path.get("stroke-opacity"))
    assert shade.get("stroke-opacity") == "1"
    assert shade.get("d") == "".join(f"M{i} {i}.5h1" for i in range(100))


def test_the_caption_and_the_scale_say_what_is_drawn():
    texts = [
        "".join(text.itertext()) for text in ElementTree.fromstring(heat_map_svg(PICTURE, 0, 1)).iter(f"{SVG}text")
    ]
    assert texts[0] == "Cross-attention, layer 1, head 2"
    assert texts[-3:] == ["0%", "100% of a row's attention", "gold link"]
    ramp = [part for part in ElementTree.fromstring(heat_map_svg(PICTURE, 0, 1)).iter() if part.get("class") == "ramp"]
    shades = [float(one.get("fill-opacity")) for one in ramp]
    assert len(shades) == SHADES and shades == sorted(shades) and shades[0] < 0.05 and shades[-1] > 0.95


def boxes(svg):
    """(left, height, size) of the words of rows; (left, right, top, size) of those of columns, which lean."""
    rows, columns = [], []
    for text in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        size = float(re.search(r"font-size: ([\d.]+)px", text.get("style") or "font-size: 14px")[1])
        width = text_width((text.findtext(f"{SVG}title") and text[0].tail) or text.text) * size / FONT_SIZE
        if text.get("text-anchor") == "end":
            rows.append((float(text.get("x")) - width, float(text.get("y")), size))
        elif place := re.match(r"translate\(([\d.]+) ([\d.]+)\)", text.get("transform") or ""):
            x, y = map(float, place.groups())
            columns.append((x, x + SLANT * width, y - SLANT * (width + size), size))
    return rows, columns


@pytest.mark.parametrize(
    "words", [["a", "b"], ["WWWWWWWWWWWWWWWWWWWWWWWW"] * 3, ["<eos>"] * 40, ["international"] * 120]
)
def test_words_stay_on_the_page_and_do_not_overlap(words):
    count = len(words)
    svg = heat_map_svg(AttentionPicture("t", words, words, np.full((1, 1, count, count), 1 / count)), 0, 0)
    root = ElementTree.fromstring(svg)
    rows, columns = boxes(svg)
    assert len(rows) == len(columns) == count
    assert all(left >= 0 for left, _, _ in rows)
    assert all(right <= float(root.get("width")) for _, right, _, _ in columns)
    assert all(top >= MARGIN + FONT_SIZE for _, _, top, _ in columns), "below the caption"
    for one, other in pairwise(rows):
        assert other[1] - one[1] >= one[2]
    for one, other in pairwise(columns):
        assert (other[0] - one[0]) * SLANT >= one[3]


def test_a_long_word_is_cut_and_whole_in_its_title():
    word = "incomprehensibilities"
    svg = heat_map_svg(AttentionPicture("t", [word], ["a"], np.ones((1, 1, 1, 1))), 0, 0)
    assert f"<title>{word}</title>incomprehensibili…</text>" in svg


def test_of_very_many_words_the_drawing_says_that_they_are_left_out():
    words = ["word"] * 300
    svg = heat_map_svg(AttentionPicture("t", words, words, np.eye(300)[None, None]), 0, 0)
    assert "300 rows and 300 columns, too many to label" in svg and ">word<" not in svg
    assert float(ElementTree.fromstring(svg).get("width")) < 2400


def test_numbers_outside_of_0_and_1_are_drawn_as_0_and_1():
    matrix = Matrix("T", "C", ["a"], ["x", "y", "z"], np.array([[-0.5, 0.25, 1.5]]), "after", "is restored")
    cells = parts(matrix_svg(matrix), "cell")
    assert [float(cell.get("fill-opacity")) for cell in cells] == [0, 0.25, 1]
    assert [cell[0].text for cell in cells] == ["a after x: -0.50", "a after y: 0.25", "a after z: 1.50"]
