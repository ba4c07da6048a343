"""One graph of nodes with features, labels and splits, read from two tables: nodes and edges.

Edges have no direction: an edge in either direction, or in both, is one edge. An edge from a node to itself is left
out, since every node attends to itself. A node without an edge is allowed.

Shape legend: V nodes, E edges, F features of a node, D features of an edge.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from regardant.config import Config
from regardant.data.tables import read_columns, read_table
from regardant.data.text_files import Fault, place, unreadable_cell
from regardant.errors import DataError

MOST_NODES = 8192
"""Maximum number of nodes of a graph. Its mask has a byte for each pair of nodes, 64 MiB at this size, and on an
accelerator every head of every layer has a score for each pair."""

MOST_FEATURES = 1 << 27
"""Maximum number of features of all nodes together (512 MiB)."""

SPLITS = {
    "train": "train",
    "val": "validation",
    "validation": "validation",
    "test": "test",
    "none": None,
    "": None,
}
"""Splits by their names in a table. None: the node is in no split."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes with features, and the edges between them."""

    ids: list[str]
    """Names of the nodes [V]."""
    features: NDArray[np.float32]
    """[V, F]"""
    edges: NDArray[np.int64]
    """[E, 2] indices of nodes, the smaller first; each edge once, without loops."""
    edge_features: NDArray[np.float32] | None = None
    """[E, D]. None: edges have no features."""

    @property
    def adjacency(self) -> NDArray[np.bool_]:
        """True where two nodes share an edge [V, V]. No node is its own neighbour."""
        found = np.zeros((len(self.ids), len(self.ids)), dtype=bool)
        found[self.edges[:, 0], self.edges[:, 1]] = found[self.edges[:, 1], self.edges[:, 0]] = True
        return found

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of each node [V]."""
        return np.bincount(self.edges.flatten(), minlength=len(self.ids))

    @property
    def content(self) -> tuple[object, ...]:
        """Nodes, edges and all features. Equal for two graphs whose nodes and edges are given alike."""
        of_edges = b"" if self.edge_features is None else self.edge_features.tobytes()
        return *self.ids, self.features.tobytes(), self.edges.tobytes(), of_edges

    def equals(self, other: "Graph") -> bool:
        """Return whether nodes, their features and edges are equal. Edge features are not compared."""
        arrays = ((self.features, other.features), (self.edges, other.edges))
        return self.ids == other.ids and all(np.array_equal(one, two) for one, two in arrays)


class LeftOutEdges(NamedTuple):
    """Counts of the given edges that a graph leaves out."""

    loops: int = 0
    """Edges from a node to itself."""
    repeated: int = 0
    """Edges given before, in the same or in the other direction."""

    def log(self, log: Callable[[str], None]) -> None:
        """Log the counts, if any edge was left out."""
        if any(self):
            log(f"edges that are left out: {self.loops:,} from a node to itself, {self.repeated:,} given before")


def merge_edges(ends: Iterable[tuple[int, int]]) -> tuple[dict[tuple[int, int], int], LeftOutEdges]:
    """Return each edge, the smaller node first, with the index of its first pair, and the counts of pairs left out."""
    found: dict[tuple[int, int], int] = {}
    loops = repeated = 0
    for number, (one, other) in enumerate(ends):
        if one == other:
            loops += 1
        elif found.setdefault((min(one, other), max(one, other)), number) != number:
            repeated += 1
    return found, LeftOutEdges(loops, repeated)


class LabelledGraph(NamedTuple):
    """A graph, and the labels of some of its nodes by split."""

    graph: Graph
    labels: Mapping[str, Mapping[int, str]]
    """Labels by split (train, validation, test), then by the index of a node."""
    left_out: LeftOutEdges = LeftOutEdges()


class _Node(NamedTuple):
    line: int
    id: str
    label: str
    split: str
    features: str


class GraphConfig(Config):
    """A table of nodes and a table of edges: .tsv, .csv, .jsonl or .parquet, the text ones also .gz or .zst."""

    nodes: str
    """The table of nodes."""

    edges: str
    """The table of edges, a pair of nodes each."""

    root: str = ""
    """The folder that relative paths start from; the current one if empty."""

    id: str = "node"
    """The column of the nodes' names."""

    label: str = "label"
    """The column of labels. A node that is in no split may have none."""

    split: str | None = "split"
    """The column of splits: train, val, test or none. Empty: labelled nodes are split at random; nodes whose label no
    training node would have are trained on."""

    features: str = "words"
    """The column of features, separated by spaces."""

    numbers: bool = False
    """True if features are numbers, equally many for each node. Otherwise they are words or their ids."""

    source: str = "source"
    """The column of an edge's first node."""

    target: str = "target"
    """The column of an edge's second node."""

    validation_share: float = Field(0.2, gt=0, lt=1)
    """Share of the labelled nodes to validate on, where there is no column of splits."""

    test_share: float = Field(0.2, gt=0, lt=1)
    """Share of the labelled nodes to test on, where there is no column of splits."""

    def read(self, seed: int) -> LabelledGraph:
        """Return the graph with the labels of all splits; the seed decides a random split.

        Raises DataError for an invalid table, with the file and the line.
        """
        path = place(self.root, self.nodes)
        nodes = list(self._nodes(path))
        if not nodes:
            raise DataError(f"{path} has no nodes: give a line for each")
        if len(nodes) > MOST_NODES:
            raise DataError(
                f"{path} has {len(nodes):,} nodes, and at most {MOST_NODES:,} are read: give a smaller graph"
            )
        numbers: dict[str, int] = {}
        for number, node in enumerate(nodes):
            if numbers.setdefault(node.id, number) != number:
                first = nodes[numbers[node.id]].line
                raise DataError(f"{path} line {node.line}: node {node.id} is in line {first} already: remove one")
        features = (_numbers if self.numbers else _bags_of_words)(path, nodes)
        found, left_out = merge_edges(self._edges(numbers))
        graph = Graph(list(numbers), features, np.array(sorted(found), dtype=np.int64).reshape(-1, 2))
        return LabelledGraph(graph, self._split(path, nodes, seed), left_out)

    def labels_of(self, table: Path, ids: Mapping[str, int]) -> dict[int, tuple[int, str]]:
        """Return (line, label) of the nodes in another table, by index. Raises DataError for an unknown node, and for
        one that is listed twice."""
        found: dict[int, tuple[int, str]] = {}
        for record in read_table(table, self.id, self.label, (self.id, self.label)):
            node, label = (_text(table, record.line, one) for one in (record.source, record.target))
            if node not in ids:
                raise DataError(f"{table} line {record.line}: node {node!r} is not in the graph: remove the line")
            if (first := found.get(ids[node])) is not None:
                raise DataError(f"{table} line {record.line}: node {node} is in line {first[0]} already: remove one")
            found[ids[node]] = record.line, label
        return found

    def _nodes(self, path: Path) -> Iterator[_Node]:
        columns = (self.id, self.label, self.split or self.label, self.features)
        for line, cells in read_columns(path, columns, (self.id, self.label, self.features)):
            node = _Node(line, *(_text(path, line, cell) for cell in cells))
            if not node.id:
                raise DataError(f"{path} line {node.line}: the node has no name: give one in column {self.id}")
            yield node

    def _edges(self, numbers: Mapping[str, int]) -> Iterator[tuple[int, int]]:
        path = place(self.root, self.edges)
        for record in read_table(path, self.source, self.target, (self.source, self.target)):
            ends = []
            for cell in (record.source, record.target):
                name = _text(path, record.line, cell)
                if name not in numbers:
                    raise DataError(
                        f"{path} line {record.line}: an edge to node {name!r}, which is not in {self.nodes}: add the "
                        "node or remove the edge"
                    )
                ends.append(numbers[name])
            yield ends[0], ends[1]

    def _split(self, path: Path, nodes: list[_Node], seed: int) -> dict[str, dict[int, str]]:
        split = self._by_column(path, nodes) if self.split else self._at_random(path, nodes, seed)
        labels = {name: {number: nodes[number].label for number in split[name]} for name in split if split[name]}
        for name, use in (("train", "train"), ("validation", "validate")):
            if name not in labels:
                remedy = f"mark some in column {self.split}" if self.split else "label more nodes of each label"
                raise DataError(f"{path} has no node to {use} on: {remedy}")
        known = set(labels["train"].values())
        for numbers in labels.values():
            for number, label in numbers.items():
                require_known(path, nodes[number].line, label, known)
        return labels

    def _by_column(self, path: Path, nodes: list[_Node]) -> dict[str, list[int]]:
        split: dict[str, list[int]] = {"train": [], "validation": [], "test": []}
        for number, node in enumerate(nodes):
            if node.split not in SPLITS:
                allowed = ", ".join(name for name in SPLITS if name)
                raise DataError(f"{path} line {node.line}: split {node.split!r}; allowed: {allowed}: correct it")
            if (name := SPLITS[node.split]) is None:
                continue
            if not node.label:
                raise DataError(
                    f"{path} line {node.line}: node {node.id} is in split {node.split} and has no label: give one, or "
                    "set its split to none"
                )
            split[name].append(number)
        return split

    def _at_random(self, path: Path, nodes: list[_Node], seed: int) -> dict[str, list[int]]:
        labelled = [number for number, node in enumerate(nodes) if node.label]
        Random(seed).shuffle(labelled)
        test = max(1, round(self.test_share * len(labelled)))
        held_out = test + max(1, round(self.validation_share * len(labelled)))
        if held_out >= len(labelled):
            raise DataError(
                f"{path} has {len(labelled)} labelled nodes, too few to split: label more, or lower the shares"
            )
        trained = {nodes[number].label for number in labelled[held_out:]}
        rare = {number for number in labelled[:held_out] if nodes[number].label not in trained}
        split = {"test": labelled[:test], "validation": labelled[test:held_out]}
        kept = {name: [number for number in numbers if number not in rare] for name, numbers in split.items()}
        return kept | {"train": [*labelled[held_out:], *sorted(rare)]}


def require_known(path: Path, line: int, label: str, known: set[str]) -> None:
    """Raise DataError for a label that no training node has."""
    if label not in known:
        raise DataError(
            f"{path} line {line}: no training node has the label {label!r} (their labels: {', '.join(sorted(known))}): "
            "correct it, or label a training node"
        )


def _text(path: Path, line: int, cell: str | Fault) -> str:
    if cell is Fault.MISSING:
        return ""
    if isinstance(cell, Fault):
        raise unreadable_cell(path, line, cell)
    return cell.strip()


def _bags_of_words(path: Path, nodes: list[_Node]) -> NDArray[np.float32]:
    bags = [node.features.split() for node in nodes]
    columns = {word: column for column, word in enumerate(sorted({word for bag in bags for word in bag}))}
    _require_few(path, len(nodes), len(columns))
    counts = np.zeros((len(nodes), len(columns)), dtype=np.float32)
    for number, bag in enumerate(bags):
        np.add.at(counts[number], [columns[word] for word in bag], 1)
    return counts


def _numbers(path: Path, nodes: list[_Node]) -> NDArray[np.float32]:
    rows = []
    for node in nodes:
        try:
            rows.append(np.array(node.features.split(), dtype=np.float32))
        except ValueError as error:
            raise DataError(f"{path} line {node.line}: {error}: features are numbers, as in '0.5 -1 3'") from error
        if len(rows[-1]) != len(rows[0]) or not np.isfinite(rows[-1]).all():
            raise DataError(
                f"{path} line {node.line}: {len(rows[-1])} features, the first node has {len(rows[0])}: give each node "
                "equally many finite numbers"
            )
    _require_few(path, len(rows), len(rows[0]))
    return np.stack(rows)


def _require_few(path: Path, nodes: int, features: int) -> None:
    if not features:
        raise DataError(f"{path}: no node has a feature: set data.features to the column of features")
    if nodes * features > MOST_FEATURES:
        raise DataError(
            f"{path} has {nodes:,} nodes of {features:,} features, and at most {MOST_FEATURES:,} features in all are "
            "read: leave out rare words"
        )
