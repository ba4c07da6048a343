from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from regardant.pictures import AttentionPicture, head_grid_svg
from regardant.pictures.head_grid import GAP, pooled
from regardant.pictures.svg import text_width

SVG = "{http://www.w3.org/2000/svg}"


def picture(kind, num_layers=2, num_heads=3, rows=4, columns=5):
    weights = np.full((num_layers, num_heads, rows, columns), 1 / columns)
    return AttentionPicture("A <b>", ["s"] * columns, ["t"] * rows, weights, kind=kind)


def test_every_head_of_every_layer_and_kind_is_drawn_once():
    root = ElementTree.fromstring(head_grid_svg([picture("Self"), picture("Cross", 1, 2)]))
    assert len([group for group in root.iter(f"{SVG}g") if group.get("class") == "shade"]) == 2 * 3 + 1 * 2
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts == [
        *("All layers and heads", None, "Self", "head 1", "head 2", "head 3", "layer 1", "layer 2"),
        *("Cross", "head 1", "head 2", "layer 1", "0%", "100% of a row's attention"),
    ]
    assert "".join(list(root.iter(f"{SVG}text"))[1].itertext()) == "A <b>" * 2  # whole in the title, then as it fits
    assert root.findtext(f"{SVG}title") == "A <b>: all layers and heads"


def test_a_drawing_has_a_scale_for_each_meaning_of_its_shades():
    of_positions = replace(picture("Self"), scale="of the largest weight")
    root = ElementTree.fromstring(head_grid_svg([picture("Cross"), of_positions, picture("Self")]))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts[-4:] == ["0%", "100% of a row's attention", "0%", "100% of the largest weight"]


def test_everything_lies_on_the_page():
    root = ElementTree.fromstring(head_grid_svg([picture("Self", 6, 8, 9, 9), picture("Cross", 6, 8, 20, 5)]))
    width, height = float(root.get("width")), float(root.get("height"))
    for rect in root.iter(f"{SVG}rect"):
        assert 0 <= float(rect.get("x")) <= float(rect.get("x")) + float(rect.get("width")) <= width
        assert 0 <= float(rect.get("y")) <= float(rect.get("y")) + float(rect.get("height")) <= height


@pytest.mark.parametrize(("rows", "columns"), [(50, 100), (100, 50), (64, 65), (130, 64), (4, 5), (1, 200)])
def test_layers_do_not_overlap_where_rows_and_columns_are_pooled(rows, columns):
    root = ElementTree.fromstring(head_grid_svg([picture("Cross", 3, 1, rows, columns)]))
    frames = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "frame"]
    tops = [float(one.get("y")) for one in frames]
    ends = [top + float(one.get("height")) for top, one in zip(tops, frames, strict=True)]
    gaps = [top - end for top, end in zip(tops[1:], ends[:-1], strict=True)]
    assert gaps == pytest.approx([GAP, GAP], abs=0.16)


def test_an_item_and_its_answer_stand_above_cut_to_the_width_and_whole_in_a_title():
    words = ["t"]
    long = "The old judge " * 20
    drawn = head_grid_svg([AttentionPicture(long, words, words, np.ones((1, 1, 1, 1)), note="Translation: Le juge")])
    root = ElementTree.fromstring(drawn)
    item = next(text for text in root.iter(f"{SVG}text") if text.findtext(f"{SVG}title") == long)
    shown = "".join(item.itertext()).removeprefix(long)
    assert shown.endswith("…") and long.startswith(shown[:-1])
    assert float(item.get("x")) + text_width(shown) <= float(root.get("width"))
    assert "Translation: Le juge</text>" in drawn


def test_sixty_tokens_of_six_layers_eight_heads_and_three_kinds_stay_under_2_megabytes():
    random = np.random.default_rng(0).dirichlet(np.full(60, 0.1), (6, 8, 60))
    words = ["t"] * 60
    drawing = head_grid_svg([AttentionPicture("t", words, words, random) for _ in range(3)])
    assert len(drawing) < 2_000_000


def test_a_long_matrix_keeps_the_largest_of_every_block():
    weights = np.zeros((130, 3))
    weights[129, 2] = 0.7
    small = pooled(weights, 64)
    assert small.shape == (44, 3)
    assert small[43, 2] == 0.7 and small.sum() == 0.7
    assert np.array_equal(pooled(weights, 130), weights)


def test_a_grid_of_nothing_is_refused():
    with pytest.raises(ValueError, match="give at least one AttentionPicture"):
        head_grid_svg([])
