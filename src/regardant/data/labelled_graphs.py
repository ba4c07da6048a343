"""Labelled graphs from files with one graph per line, as JSON objects.

    {"nodes": [[6, 0], [8, 1], [6, 0]], "edges": [[0, 1], [1, 2]], "edge_features": [[1], [2]], "label": "ether"}

`nodes` has the features of each node, equally many numbers. `edges` are pairs of node indices, from 0, without
direction. `edge_features`, numbers for each edge, may be left out.

Shape legend: V nodes, E edges, F features of a node, D features of an edge.
"""

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from regardant.data.graphs import Graph, LeftOutEdges, merge_edges
from regardant.data.labelled import Labelled, LabelledConfig, Sets
from regardant.data.splits import FilesConfig
from regardant.data.text_files import place, read_lines, require_whole_characters
from regardant.errors import DataError

EXAMPLE = '{"nodes": [[1, 0], [0, 1], [0, 1]], "edges": [[0, 1], [1, 2]]}'

SHOWN = 40
"""Number of characters of a line shown in a message."""


class GraphLinesConfig(FilesConfig, LabelledConfig):
    """Graphs from .jsonl files, plain, .gz or .zst: a line has `nodes`, `edges` and a `label`."""

    kind: Literal["graphs"] = "graphs"

    def chosen(self, log: Callable[[str], None]) -> Self:
        files = [name for name in (self.source, self.validation, self.test) if name is not None]
        counted = [left_out for name in files for _, _, left_out in read_graphs(place(self.root, name))]
        LeftOutEdges(*(sum(column) for column in zip(*counted, strict=True))).log(log)
        return self

    def read(self, seed: int) -> Sets:
        return self.sets(self.items, self.group_of, self.validation_share, seed)

    def group_of(self, labelled: Labelled) -> Hashable:
        return labelled[0].content

    def given(self, data: Path) -> list[Labelled]:
        return list(self.items(str(data.resolve())))

    def items(self, file: str) -> Iterator[Labelled]:
        """Yield the labelled graphs of a file. Raises DataError."""
        return ((graph, label) for graph, label, _ in read_graphs(place(self.root, file)))


def read_graphs(path: Path) -> Iterator[tuple[Graph, str, LeftOutEdges]]:
    """Yield the graphs of a file with their labels and the counts of edges left out; blank lines are skipped.

    Raises DataError, with the line.
    """
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path} line {number:,}"
        given = _object(line, where)
        label = given.get("label")
        if isinstance(label, bool) or not isinstance(label, str | int) or not str(label).strip():
            raise DataError(f'{where} has no label: add one, such as "label": "ring"')
        require_whole_characters(f"{where}: the label", str(label))
        graph, left_out = graph_of(given, where)
        yield graph, str(label).strip(), left_out


def parse_graph(text: str) -> Graph:
    """Return the graph of a JSON object. Raises DataError."""
    where = repr(text.strip()[:SHOWN])
    return graph_of(_object(text, where), where)[0]


def graph_of(given: Mapping[str, Any], where: str) -> tuple[Graph, LeftOutEdges]:
    """Return the graph of a JSON object, and the counts of edges left out. Raises DataError, which names `where`."""
    features = _numbers(given["nodes"], f"{where}: nodes", "[[1, 0], [0, 1]]")
    if not features.size:
        raise DataError(f"{where} has no nodes with features: give each node a list of numbers, [1] if it has none")
    pairs = _pairs(given.get("edges", []), len(features), where)
    found, left_out = merge_edges(pairs)
    order = sorted(found)
    edges = np.array(order, dtype=np.int64).reshape(-1, 2)
    of_edges = None
    if given.get("edge_features"):
        of_edges = _numbers(given["edge_features"], f"{where}: edge_features", "[[0.5], [1]]")
        if len(of_edges) != len(pairs):
            raise DataError(
                f"{where} has {len(pairs)} edges and {len(of_edges)} edge_features: give one list for each edge"
            )
        for (one, other), row in zip(pairs, of_edges, strict=True):
            first = found.get((min(one, other), max(one, other)))
            if first is not None and not np.array_equal(of_edges[first], row):
                raise DataError(f"{where}: edge [{one}, {other}] is given twice, with different features: remove one")
        of_edges = of_edges[[found[edge] for edge in order]]
    return Graph([str(number) for number in range(len(features))], features, edges, of_edges), left_out


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or "nodes" not in given:
        raise DataError(f"{where} is not a graph: give a JSON object with nodes and edges, such as {EXAMPLE}")
    return given


def _numbers(given: Any, where: str, example: str) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # numbers beyond float32 become infinite, and are refused below
            rows = np.array(given, dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        rows = np.zeros(0, dtype=np.float32)
        if isinstance(given, list) and given and len({len(one) for one in given if isinstance(one, list)}) > 1:
            raise DataError(f"{where} have unequal numbers of features: give equally many, as {example}") from None
    if rows.ndim != 2 and not (rows.ndim == 1 and given == []):
        raise DataError(f"{where} are not lists of numbers: give one list for each, such as {example}")
    if not np.isfinite(rows).all():
        raise DataError(f"{where} hold a number that is not finite: correct it")
    return rows


def _pairs(given: Any, nodes: int, where: str) -> list[tuple[int, int]]:
    if not isinstance(given, list):
        raise DataError(f"{where}: edges are not a list: give pairs of nodes, such as [[0, 1], [1, 2]]")
    pairs = []
    for edge in given:
        if not isinstance(edge, list) or len(edge) != 2 or any(type(end) is not int for end in edge):
            raise DataError(f"{where}: edge {edge!r:.{SHOWN}} is not a pair of node numbers: write it as [0, 1]")
        for end in edge:
            if not 0 <= end < nodes:
                raise DataError(
                    f"{where}: edge {edge} is to node {end}, and the {nodes} nodes are numbered from 0 to {nodes - 1}: "
                    "correct it"
                )
        pairs.append((edge[0], edge[1]))
    return pairs
