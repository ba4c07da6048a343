"""Tables of nodes and edges: which graph they make, and one line for each thing that is wrong with them."""

import gzip
import json
import re

import numpy as np
import pytest

from regardant.data import graphs
from regardant.data.graphs import GraphConfig
from regardant.errors import DataError

NODES = """\
node\tlabel\tsplit\twords
a\tx\ttrain\tred old
b\ty\ttrain\told old
c\tx\tval\tblue
d\ty\ttest\t
e\t\tnone\tred
f\t\t\tred blue
"""
EDGES = "source\ttarget\na\tb\nb\ta\nb\tc\nc\tc\na\td\ne\ta\n"


@pytest.fixture
def write(tmp_path):
    def write(nodes=NODES, edges=EDGES, **fields):
        (tmp_path / "nodes.tsv").write_text(nodes, encoding="utf-8")
        (tmp_path / "edges.tsv").write_text(edges, encoding="utf-8")
        return GraphConfig(nodes="nodes.tsv", edges="edges.tsv", root=str(tmp_path), **fields)

    return write


def test_edges_have_no_direction_and_are_counted_once(write):
    graph, *_ = write().read(1)
    assert graph.ids == list("abcdef")
    assert graph.edges.tolist() == [[0, 1], [0, 3], [0, 4], [1, 2]]
    assert graph.degrees.tolist() == [3, 2, 1, 1, 1, 0]
    assert graph.adjacency.sum(1).tolist() == graph.degrees.tolist()
    assert (graph.adjacency == graph.adjacency.T).all()


def test_loops_and_repeated_edges_are_counted(write):
    said = []
    write().read(1).left_out.log(said.append)
    assert said == ["edges that are left out: 1 from a node to itself, 1 given before"]
    write(edges="source\ttarget\na\tb\n").read(1).left_out.log(said.append)
    assert len(said) == 1


def test_words_are_counted_node_by_node(write):
    graph, *_ = write().read(1)
    assert graph.features.tolist() == [[0, 1, 1], [0, 2, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1], [1, 0, 1]]


def test_features_may_be_numbers(write):
    nodes = "node\tlabel\tsplit\twords\na\tx\ttrain\t0.5 -1\nb\tx\tval\t2 3e1\n"
    graph, labels, _ = write(nodes, "source\ttarget\n", numbers=True).read(1)
    assert graph.features.tolist() == [[0.5, -1], [2, 30]] and graph.edges.shape == (0, 2)
    assert labels == {"train": {0: "x"}, "validation": {1: "x"}}


def test_labels_are_those_of_their_split(write):
    _, labels, _ = write().read(1)
    assert labels == {"train": {0: "x", 1: "y"}, "validation": {2: "x"}, "test": {3: "y"}}


def test_without_a_column_labelled_nodes_are_split_by_the_seed(write):
    nodes = "node\tlabel\twords\n" + "".join(f"n{one}\t{'x' * (one < 50)}\tw\n" for one in range(60))
    config = write(nodes, "source\ttarget\n", split=None)
    _, labels, _ = config.read(1)
    assert {name: len(one) for name, one in labels.items()} == {"test": 10, "validation": 10, "train": 30}
    assert sorted(number for one in labels.values() for number in one) == list(range(50))
    assert config.read(1).labels == labels != config.read(2).labels


def test_compressed_tables_are_read(write, tmp_path):
    config = write()
    (tmp_path / "nodes.tsv.gz").write_bytes(gzip.compress(NODES.encode()))
    graph, *_ = config.model_copy(update={"nodes": "nodes.tsv.gz"}).read(1)
    assert graph.ids == list("abcdef")


def test_whole_numbers_in_tables_of_objects_are_names(tmp_path):
    nodes = [{"node": 7, "label": 1, "split": "train", "words": 3}, {"node": 8, "label": 1, "split": "val", "words": 5}]
    for name, rows in (("nodes", nodes), ("edges", [{"source": 8, "target": 7}])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = GraphConfig(nodes="nodes.jsonl", edges="edges.jsonl", root=str(tmp_path))
    graph, labels, _ = config.read(1)
    assert (graph.ids, graph.edges.tolist()) == (["7", "8"], [[0, 1]])
    assert labels == {"train": {0: "1"}, "validation": {1: "1"}}
    assert config.labels_of(tmp_path / "nodes.jsonl", {"7": 0, "8": 1}) == {0: (1, "1"), 1: (2, "1")}


def line(number, text, table="nodes"):
    return rf"{table}\.tsv line {number}: {re.escape(text)}"


def test_numbers_and_names_of_columns_are_not_mixed(write):
    with pytest.raises(DataError, match=r"nodes\.tsv has no column 1; it has node, label, split, words"):
        write(id="1", label="2").read(1)


def test_the_only_node_of_a_label_is_trained_on_whatever_the_seed_is(write):
    rows = "".join(f"{number}\t{'xy'[number % 2]}\t\tred\n" for number in range(20))
    config = write("node\tlabel\tsplit\twords\n" + rows + "odd\tz\t\tred\n", "source\ttarget\n", split=None)
    splits = [config.read(seed).labels for seed in range(8)]
    assert all("z" in labels["train"].values() for labels in splits)
    assert {len(labels["validation"]) + len(labels["test"]) for labels in splits} == {7, 8}


@pytest.mark.parametrize(
    ("nodes", "edges", "told"),
    [
        (NODES, EDGES + "a\tz\n", line(8, "an edge to node 'z', which is not in nodes.tsv: add the node", "edges")),
        (NODES, EDGES + "a\n", line(8, "an edge to node '', which is not in nodes.tsv", "edges")),
        (NODES + "g\tz\ttest\tred\n", EDGES, line(8, "no training node has the label 'z' (their labels: x, y)")),
        (NODES + "g\tx\tdev\tred\n", EDGES, line(8, "split 'dev'; allowed: train, val, validation, test, none")),
        (NODES + "g\t\ttest\tred\n", EDGES, line(8, "node g is in split test and has no label")),
        (NODES + "a\tx\ttest\tred\n", EDGES, line(8, "node a is in line 2 already: remove one")),
        (NODES + "\tx\ttest\tred\n", EDGES, line(8, "the node has no name: give one in column node")),
        (NODES.replace("train", "none"), EDGES, "has no node to train on: mark some in column split"),
        (NODES.replace("val", "none"), EDGES, "has no node to validate on: mark some in column split"),
        ("node\tlabel\tsplit\twords\n", EDGES, "has no nodes: give a line for each"),
        (NODES.replace("words", "terms"), EDGES, "has no column words; it has node, label, split, terms"),
        (NODES, EDGES.replace("target", "to"), "has no column target; it has source, to"),
        (re.sub(r"\t[^\t\n]*\n", "\t\n", NODES).replace("split\t", "split\twords"), EDGES, "no node has a feature"),
    ],
)
def test_a_table_that_is_wrong_is_one_line(write, nodes, edges, told):
    with pytest.raises(DataError, match=told) as refusal:
        write(nodes, edges).read(1)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("1 two", "could not convert string to float: 'two': features are numbers, as in '0.5 -1 3'"),
        ("1", "1 features, the first node has 2: give each node equally many finite numbers"),
        ("1 nan", "2 features, the first node has 2: give each node equally many finite numbers"),
    ],
)
def test_a_number_that_is_none_is_one_line(write, row, told):
    nodes = f"node\tlabel\tsplit\twords\na\tx\ttrain\t0.5 -1\nb\tx\tval\t{row}\n"
    with pytest.raises(DataError, match=line(3, told)):
        write(nodes, "source\ttarget\n", numbers=True).read(1)


def test_too_few_labels_to_split_is_one_line(write):
    with pytest.raises(DataError, match="has 4 labelled nodes, too few to split"):
        write(split=None, test_share=0.5, validation_share=0.5).read(1)


def test_graphs_beyond_the_bounds_are_refused(write, monkeypatch):
    monkeypatch.setattr(graphs, "MOST_NODES", 5)
    with pytest.raises(DataError, match="has 6 nodes, and at most 5 are read: give a smaller graph"):
        write().read(1)
    monkeypatch.setattr(graphs, "MOST_NODES", 6)
    monkeypatch.setattr(graphs, "MOST_FEATURES", 17)
    with pytest.raises(DataError, match="has 6 nodes of 3 features, and at most 17 features in all are read"):
        write().read(1)


def test_graphs_are_equal_if_nodes_features_and_edges_are(write):
    graph, *_ = write().read(1)
    assert graph.equals(write().read(2).graph)
    assert not graph.equals(write(NODES.replace("\nf", "\ng"), EDGES).read(1).graph)
    assert not graph.equals(write(NODES.replace("red old", "red red"), EDGES).read(1).graph)
    assert not graph.equals(write(NODES, EDGES + "d\tf\n").read(1).graph)
    assert graph.features.dtype == np.float32
