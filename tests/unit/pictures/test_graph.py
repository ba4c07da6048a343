"""Items that are graphs: attention as the width of the lines between nodes."""

import json
import re
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest

from regardant.data.graph_structure import drawing_places
from regardant.pictures import AttentionPicture, Layout, attention_page, head_grid_svg, head_svg, png
from regardant.pictures.graph import LETTERS, WIDEST, node_names
from regardant.pictures.head_grid import SIDE
from regardant.pictures.svg import FONT_SIZE, text_width

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ["a", "b", "c <&>", "d"]
EDGES = [(0, 1), (1, 2), (2, 3)]
GRAPH = Layout(NAMES, 1, 4, places=[(0, 0), (1, 0), (1, 1), (0, 1)], edges=EDGES)


def drawn(beside=()):
    labels = [*beside, *NAMES]
    weights = np.random.default_rng(0).dirichlet(np.full(len(labels), 0.5), (2, 2, len(labels)))
    return AttentionPicture("a graph", labels, labels, weights, source_layout=GRAPH, target_layout=GRAPH)


def test_a_graph_is_drawn_in_a_square():
    assert GRAPH.is_grid and GRAPH.height == 1
    assert not Layout(NAMES, 1, 4).is_grid


@pytest.mark.parametrize("beside", [(), ("<class>",)])
def test_edges_are_as_wide_as_their_weights_in_both_directions(beside):
    picture = drawn(beside)
    root = ElementTree.fromstring(head_grid_svg([picture]))
    lines = [one for one in root.iter(f"{SVG}path") if one.get("class") == "weight"]
    expected = []
    for head in picture.weights.reshape(-1, *picture.weights.shape[2:]):
        among = head[len(beside) :, len(beside) :]
        both = np.array([among[one, other] + among[other, one] for one, other in EDGES])
        expected.append(both / both.max())
    widths = [float(one.get("stroke-width")) for one in lines]
    np.testing.assert_allclose(widths, np.concatenate(expected) * WIDEST * SIDE, atol=6e-3)
    assert [one.find(f"{SVG}title").text.partition(":")[0] for one in lines[:3]] == [
        "a and b",
        "b and c <&>",
        "c <&> and d",
    ]
    assert png(head_grid_svg([picture])).startswith(b"\x89PNG")


def test_names_of_nodes_cover_no_node_and_no_other_name():
    labels = ["first node", "second node", "third", "last"]
    close = Layout(labels, 1, 4, places=[(0, 0), (0.1, 0), (0.1, 0.05), (1, 1)])
    boxes = []
    for text in node_names(close, 0, 0, 480):
        root = ElementTree.fromstring(text)
        x, y, width = float(root.get("x")), float(root.get("y")), text_width(root.text) * LETTERS / FONT_SIZE
        left = x - {"start": 0, "middle": 0.5, "end": 1}[root.get("text-anchor")] * width
        boxes.append((left, left + width, y))
    assert len(boxes) >= 3 and all(left >= 0 and right <= 480 for left, right, _ in boxes)
    for one, other in combinations(boxes, 2):
        assert one[1] <= other[0] or other[1] <= one[0] or abs(one[2] - other[2]) >= LETTERS
    nodes = [(480 * 0.04 + 480 * 0.92 * x, 480 * 0.04 + 480 * 0.92 * y) for x, y in close.places]
    for left, right, y in boxes:
        assert not any(left < x < right and abs(height - y) < LETTERS / 2 for x, height in nodes)


def test_one_head_of_a_graph_names_its_nodes_above_its_lines():
    drawing = head_svg(drawn(), 0, 1)
    assert drawing.rindex('class="weight"') < drawing.index('class="name"')
    assert "Lines: attention along an edge, relative to the largest." in drawing
    assert "Encoder" not in drawing and "Cross-attention, layer 1, head 2" in drawing


def test_a_graph_without_edges_is_drawn():
    alone = Layout(["0"], 1, 1, places=drawing_places(1, []))
    picture = AttentionPicture("x", ["0"], ["0"], np.ones((1, 1, 1, 1)), source_layout=alone, target_layout=alone)
    assert "circle" in head_grid_svg([picture])


def test_the_page_has_the_places_and_the_edges():
    page = attention_page([[drawn()]], title="x")
    (record,) = json.loads(re.search(r"<script[^>]*application/json[^>]*>(.*?)</script>", page, re.DOTALL)[1])
    (layout,) = record["layouts"]
    assert layout["places"] == [[0, 0], [1, 0], [1, 1], [0, 1]] and layout["edges"] == [[0, 1], [1, 2], [2, 3]]


def test_joined_nodes_are_drawn_near_each_other():
    edges = [(one, (one + 1) % 12) for one in range(12)]
    places = np.array(drawing_places(12, edges))
    assert (
        places.min() == 0 and places.max() == 1 and places.tolist() == [list(one) for one in drawing_places(12, edges)]
    )
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    assert np.mean([apart[edge] for edge in edges]) < 0.6 * apart.sum() / (12 * 11)
