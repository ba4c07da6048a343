"""Files of graphs and drawn families: which graphs they make, and one line for each thing that is wrong with them."""

import json
import re
from collections import Counter

import networkx
import numpy as np
import pytest

from regardant.data.graph_families import FAMILIES, GraphFamiliesConfig
from regardant.data.labelled_graphs import GraphLinesConfig, parse_graph, read_graphs
from regardant.errors import DataError

ETHER = {"nodes": [[6, 0], [8, 1], [6, 0]], "edges": [[2, 1], [0, 1]], "edge_features": [[2], [1]], "label": "ether"}


@pytest.fixture
def write(tmp_path):
    def write(*lines, name="train.jsonl"):
        path = tmp_path / name
        path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines), "utf-8")
        return path

    return write


def test_a_line_is_a_graph_with_a_label(write):
    ((graph, label, left_out),) = read_graphs(write(ETHER, ""))
    assert label == "ether" and graph.ids == ["0", "1", "2"] and not any(left_out)
    assert graph.features.tolist() == [[6, 0], [8, 1], [6, 0]]
    assert graph.edges.tolist() == [[0, 1], [1, 2]] and graph.edge_features.tolist() == [[1], [2]]


def test_loops_and_repeated_edges_are_left_out_and_counted(write):
    line = {"nodes": [[1], [1], [1]], "edges": [[0, 1], [1, 0], [2, 2], [1, 0]], "label": 3}
    ((graph, label, left_out),) = read_graphs(write(line))
    assert (label, graph.edges.tolist(), left_out) == ("3", [[0, 1]], (1, 2))
    said = []
    config = GraphLinesConfig(source=str(write(line, line)))
    assert config.chosen(said.append) is config
    assert said == ["edges that are left out: 2 from a node to itself, 4 given before"]


def test_a_node_may_have_no_edge():
    assert parse_graph('{"nodes": [[1], [2]]}').edges.shape == (0, 2)
    assert parse_graph('{"nodes": [[1], [2]], "edges": [], "edge_features": []}').edge_features is None


def test_splits_are_files_or_a_share(write):
    lines = [{**ETHER, "nodes": [[number, 0], [1, 1], [2, 2]]} for number in range(20)]
    config = GraphLinesConfig(source=str(write(*lines)), validation_share=0.25)
    sets = config.read(1)
    assert {name: len(items) for name, items in sets.items()} == {"train": 15, "validation": 5}
    assert sorted(graph.features[0, 0] for items in sets.values() for graph, _ in items) == list(range(20))
    test = write(*lines[:3], name="test.jsonl")
    sets = config.model_copy(update={"validation": str(test), "test": str(test)}).read(1)
    assert {name: len(items) for name, items in sets.items()} == {"train": 20, "validation": 3, "test": 3}
    assert len(config.given(test)) == 3


def line_of(**fields):
    return {name: one for name, one in {**ETHER, **fields}.items() if one is not None}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "is not a graph: give a JSON object with nodes and edges, such as "),
        ("[1]", "is not a graph: give a JSON object"),
        (line_of(nodes=None), "is not a graph: give a JSON object"),
        (line_of(label=None), 'has no label: add one, such as "label": "ring"'),
        (line_of(label=" "), "has no label"),
        (line_of(label=True), "has no label"),
        (line_of(label="ring \ud83d"), "the label has half of a surrogate pair, \\ud83d: write the whole character"),
        (line_of(nodes=[]), "has no nodes with features: give each node a list of numbers, [1] if it has none"),
        (line_of(nodes=[[], [], []]), "has no nodes with features"),
        (line_of(nodes=[[6, 0], [8], [6, 0]]), "nodes have unequal numbers of features: give equally many, as [["),
        (line_of(nodes=[["C"], ["O"], ["C"]]), "nodes are not lists of numbers: give one list for each, such as [["),
        (line_of(nodes=[6, 8, 6]), "nodes are not lists of numbers"),
        (line_of(nodes="abc"), "nodes are not lists of numbers"),
        (line_of(nodes=[[float("nan"), 0], [8, 1], [6, 0]]), "nodes hold a number that is not finite: correct it"),
        (line_of(edges={"0": 1}), "edges are not a list: give pairs of nodes, such as [[0, 1], [1, 2]]"),
        (line_of(edges=[[0, 1], [1]]), "edge [1] is not a pair of node numbers: write it as [0, 1]"),
        (line_of(edges=[[0, 1], [1, "2"]]), "edge [1, '2'] is not a pair of node numbers"),
        (
            line_of(edges=[[0, 1], [1, 3]]),
            "edge [1, 3] is to node 3, and the 3 nodes are numbered from 0 to 2: correct",
        ),
        (line_of(edges=[[0, 1], [-1, 1]]), "edge [-1, 1] is to node -1"),
        (line_of(edge_features=[[1]]), "has 2 edges and 1 edge_features: give one list for each edge"),
        (line_of(edge_features=[[1], ["double"]]), "edge_features are not lists of numbers"),
        (line_of(edges=[[0, 1], [1, 0]]), "edge [1, 0] is given twice, with different features: remove one"),
    ],
)
def test_a_line_that_is_wrong_is_told_by_its_number(write, line, told):
    with pytest.raises(DataError, match=rf"train\.jsonl line 2:? {re.escape(told)}") as refusal:
        list(read_graphs(write(ETHER, line)))
    assert "\n" not in str(refusal.value)


def test_families_have_equally_many_edges_and_differ_in_their_structure():
    sets = GraphFamiliesConfig(size=120, test_size=40).read(1)
    assert {name: len(items) for name, items in sets.items()} == {"train": 108, "validation": 12, "test": 40}
    assert Counter(label for _, label in sets["test"]) == dict.fromkeys(FAMILIES, 10)
    degrees, triangles = {}, {}
    for graph, label in sets["train"]:
        assert len(graph.edges) == 2 * len(graph.ids) and (graph.features == 1).all()
        drawn = networkx.Graph(graph.edges.tolist())
        degrees.setdefault(label, []).append(graph.degrees.max())
        triangles.setdefault(label, []).append(networkx.transitivity(drawn))
    assert np.mean(degrees["preferential"]) > 1.3 * max(np.mean(degrees[one]) for one in FAMILIES if one[0] != "p")
    assert np.mean(triangles["small_world"]) > 1.3 * max(np.mean(triangles[one]) for one in FAMILIES if one[0] != "s")


def test_the_seed_decides_the_families():
    first, same, other = (GraphFamiliesConfig(size=8, test_size=4).read(seed) for seed in (1, 1, 2))
    edges = [[graph.edges.tolist() for graph, _ in one["train"]] for one in (first, same, other)]
    assert edges[0] == edges[1] != edges[2]
