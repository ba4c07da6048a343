from xml.etree import ElementTree

import numpy as np
import pytest

from regardant.pictures import AttentionPicture, heat_map_svg

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
    assert ElementTree.fromstring(svg).findtext(f"{SVG}title") == "A pair: cross-attention, layer 0, mean of heads"


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
    assert len(list(root.iter(f"{SVG}rect"))) == 2  # the page and one cell


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


def test_of_many_cells_only_the_shades_are_drawn_and_the_drawing_is_scaled_down():
    words = [str(i) for i in range(100)]
    svg = heat_map_svg(AttentionPicture("Long", words, words, np.eye(100)[None, None]), 0, 0)
    root = ElementTree.fromstring(svg)
    assert not parts(svg, "cell")
    (shade,) = root.iter(f"{SVG}path")
    assert shade.get("stroke-opacity") == "1"
    assert shade.get("d") == "".join(f"M{i} {i}.5h1" for i in range(100))
    assert float(root.get("width")) == 2400 < float(root.get("viewBox").split()[2])
