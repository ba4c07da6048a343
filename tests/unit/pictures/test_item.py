"""Items whose elements stand on a grid: checked, drawn once, and shaded by the attention of one query."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from regardant.pictures import AttentionPicture, Layout, attention_page, head_grid_svg, png
from regardant.pictures.item import DARKEST

SVG = "{http://www.w3.org/2000/svg}"
PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
CELLS = [f"row {row}, column {column}" for row in (1, 2) for column in (1, 2, 3)]


def layout(picture=PIXEL):
    return Layout(CELLS, 2, 3, picture)


def drawn(beside=(), picture=PIXEL, num_layers=2, num_heads=2, seed=0):
    labels = [*beside, *CELLS]
    weights = np.random.default_rng(seed).dirichlet(np.full(len(labels), 0.5), (num_layers, num_heads, len(labels)))
    return AttentionPicture(
        "a.png", labels, labels, weights, source_layout=layout(picture), target_layout=layout(picture)
    )


def opacities(root):
    return np.array([float(one.get("fill-opacity")) for one in root.iter(f"{SVG}rect") if one.get("class") == "lit"])


def test_a_layout_is_a_grid_by_its_rows_or_its_picture():
    assert layout().is_grid and layout(None).is_grid and Layout(["a"], 1, 1, PIXEL).is_grid
    assert not Layout(["a", "b"], 1, 2).is_grid


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="a grid of 2 x 3 elements with 5 labels: give one for each"):
        Layout(CELLS[:5], 2, 3)
    weights = np.full((1, 1, 7, 7), 1 / 7)
    with pytest.raises(ValueError, match="source does not end in the elements of source_layout"):
        AttentionPicture("x", [*CELLS, "<class>"], ["t"] * 7, weights, source_layout=layout())
    with pytest.raises(ValueError, match="target does not end in the elements of target_layout"):
        AttentionPicture("x", ["s"] * 7, ["t"] * 7, weights, target_layout=layout())


@pytest.mark.parametrize(
    ("beside", "named"), [(["<class>"], "attention of <class>."), ([], "mean attention of all queries.")]
)
def test_every_head_is_shaded_by_the_class_token_or_the_mean(beside, named):
    picture = drawn(beside)
    root = ElementTree.fromstring(head_grid_svg([picture]))
    expected = []
    for head in picture.weights.reshape(-1, *picture.weights.shape[2:]):
        weights = head[0, 1:] if beside else head.mean(0)
        expected.append(DARKEST * weights / weights.max())
    np.testing.assert_allclose(opacities(root), np.concatenate(expected), atol=5e-4)
    assert any("".join(text.itertext()).endswith(named) for text in root.iter(f"{SVG}text"))


def test_the_picture_is_in_the_file_once():
    found = head_grid_svg([drawn(), drawn(seed=1)])
    assert found.count(PIXEL) == 1 and len(re.findall(r'<use href="#item-[0-9a-f]{8}"', found)) == 8
    assert png(found).startswith(b"\x89PNG")


def test_without_a_picture_the_labels_are_drawn_in_the_grid():
    root = ElementTree.fromstring(head_grid_svg([drawn(picture=None)]))
    assert len([text for text in root.iter(f"{SVG}text") if (text.text or "").startswith("row")]) == 6
    assert not list(root.iter(f"{SVG}image"))


def test_shades_lie_on_their_elements():
    root = ElementTree.fromstring(head_grid_svg([drawn(num_layers=1, num_heads=1)]))
    lit = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "lit"]
    assert [one.find(f"{SVG}title").text.partition(":")[0] for one in lit] == CELLS
    places = [(float(one.get("x")), float(one.get("y"))) for one in lit]
    assert places == sorted(places, key=lambda place: (place[1], place[0]))
    assert len({x for x, _ in places}) == 3 and len({y for _, y in places}) == 2


def test_elements_may_be_taller_than_wide():
    spectrogram = Layout(["0 s", "1 s", "2 s", "3 s"], 1, 4, PIXEL, 2.0)
    weights = np.full((1, 1, 4, 4), 0.25)
    picture = AttentionPicture("a.wav", spectrogram.labels, spectrogram.labels, weights, source_layout=spectrogram)
    root = ElementTree.fromstring(head_grid_svg([picture]))
    (image,) = root.iter(f"{SVG}image")
    assert float(image.get("height")) == pytest.approx(0.5 * float(image.get("width"))) and spectrogram.height == 0.5
    lit = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "lit"]
    assert [float(one.get("height")) / float(one.get("width")) for one in lit] == pytest.approx([2.0] * 4, rel=0.01)
    assert len({one.get("y") for one in lit}) == 1


def test_lines_that_would_hide_the_picture_are_left_out():
    def lines(columns):
        wide = Layout([str(number) for number in range(columns)], 1, columns, PIXEL, columns / 3)
        weights = np.full((1, 1, columns, columns), 1 / columns)
        picture = AttentionPicture("a.wav", wide.labels, wide.labels, weights, source_layout=wide)
        path, *_ = ElementTree.fromstring(head_grid_svg([picture])).iter(f"{SVG}path")  # others are the scale's
        return path.get("d").count("v")

    assert (lines(10), lines(100)) == (9, 0)


def test_a_page_has_each_layout_once():
    page = attention_page([[drawn(), drawn(["<class>"])]], title="x")
    found = re.search(r'id="sentences">(.*?)</script>', page)
    assert found is not None
    (record,) = json.loads(found[1])
    (found,) = record["layouts"]
    assert found == {"rows": 2, "columns": 3, "picture": PIXEL, "aspect": 1.0, "places": [], "edges": []}
    assert [(kind["sourceLayout"], kind["targetLayout"]) for kind in record["kinds"]] == [(0, 0), (0, 0)]
