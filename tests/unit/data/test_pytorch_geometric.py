"""Graphs of PyTorch Geometric, and objects with the same fields where it is not installed."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from regardant.data.graphs import GraphConfig
from regardant.data.labelled_graphs import parse_graph, read_graphs
from regardant.data.pytorch_geometric import graph_line, graph_of_data, write_tables
from regardant.errors import DataError


def made(**fields):
    try:
        from torch_geometric.data import Data
    except ImportError:
        return SimpleNamespace(**fields)
    return Data(**fields)


def triangle(**fields):
    given = {
        "x": torch.tensor([[1.0, 2], [3, 4], [5, 6]]),
        "edge_index": torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]),
        "edge_attr": torch.tensor([1.0, 1, 2, 2, 3, 3]),
        "y": torch.tensor([4]),
    }
    return made(**{**given, **fields})


def test_the_package_itself_makes_such_graphs():
    geometric = pytest.importorskip("torch_geometric.data")
    assert isinstance(triangle(), geometric.Data)


def test_both_directions_of_an_edge_are_one():
    graph = graph_of_data(triangle())
    assert graph.features.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert graph.edge_features.tolist() == [[1], [3], [2]]


def test_a_line_is_read_as_the_graph_with_its_label(tmp_path):
    (tmp_path / "a.jsonl").write_text(graph_line(triangle()) + "\n")
    ((graph, label, _),) = read_graphs(tmp_path / "a.jsonl")
    assert label == "4" and graph.equals(graph_of_data(triangle()))
    assert parse_graph(graph_line(triangle(y=None, edge_attr=None))).edge_features is None


def test_tables_are_read_as_the_graph_with_its_splits(tmp_path):
    masks = {f"{name}_mask": torch.arange(3) == number for number, name in enumerate(("train", "val"))}
    features = torch.tensor([[1234567.0, 2], [3, 1 / 3], [100000.5, 6]])
    of_edges = torch.arange(6.0)  # another in each direction, which a model of edges would refuse
    write_tables(triangle(x=features, edge_attr=of_edges, y=torch.tensor([1, 1, 0]), **masks), tmp_path / "tables")
    config = GraphConfig(nodes="nodes.csv", edges="edges.csv", root=str(tmp_path / "tables"), numbers=True)
    graph, labels, _ = config.read(1)
    np.testing.assert_array_equal(graph.features, features)
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert labels == {"train": {0: "1"}, "validation": {1: "1"}}


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda path: graph_of_data(triangle(x=None)), "the graph has no node features: set data.x, to ones if"),
        (
            lambda path: graph_of_data(triangle(edge_index=torch.tensor([[0], [3]]), edge_attr=None)),
            r"the graph: edge \[0, 3\] is to node 3, and the 3 nodes are numbered from 0 to 2",
        ),
        (
            lambda path: graph_line(triangle(y=torch.tensor([1, 2, 3]))),
            "the graph has 3 labels, not one: use write_tab",
        ),
        (lambda path: write_tables(triangle(), path), "the graph has 3 nodes and no label for each: set data.y"),
        (
            lambda path: write_tables(triangle(y=torch.ones(3), train_mask=torch.ones(3, 2)), path),
            r"train_mask has the shape 3 x 2 for 3 nodes: choose one of several splits, as in data\.train_mask = ",
        ),
    ],
)
def test_what_is_no_such_graph_is_one_line(tmp_path, act, told):
    with pytest.raises(DataError, match=told) as refusal:
        act(tmp_path / "tables")
    assert "\n" not in str(refusal.value)
