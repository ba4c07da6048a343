"""Graphs of PyTorch Geometric in formats that this package reads: JSON lines of small graphs, tables of a large graph.

Only objects in memory are converted. Their files are pickles, which can run code when loaded, and are not read.
Fey and Lenssen 2019, "Fast graph representation learning with PyTorch Geometric", https://arxiv.org/abs/1903.02428.

Shape legend: V nodes, E edges in both directions, F features of a node, D features of an edge.
"""

import csv
import json
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regardant.data.graphs import Graph
from regardant.data.labelled_graphs import graph_of
from regardant.errors import DataError

MASKS = {"train_mask": "train", "val_mask": "val", "test_mask": "test"}
"""Names of splits in a table, by the masks of their nodes."""


class Data(Protocol):
    """Fields that are read from a `torch_geometric.data.Data`: tensors, or None."""

    x: Any
    """[V, F]"""
    edge_index: Any
    """[2, E]"""
    edge_attr: Any
    """[E] or [E, D]"""
    y: Any
    """Label as a number: one of the graph, or one of each node."""


def graph_of_data(data: Data) -> Graph:
    """Return a graph. Raises DataError for one without features or with edges to unknown nodes."""
    return graph_of(_fields(data), "the graph")[0]


def graph_line(data: Data) -> str:
    """Return a graph as one line of JSON, with its label if it has one, for `data.kind=graphs` and `predict`.

    Raises DataError as `graph_of_data` does.
    """
    fields = _fields(data)
    graph_of(fields, "the graph")
    label = _array(data, "y")
    if label is not None:
        if label.size != 1:
            raise DataError(f"the graph has {label.size} labels, not one: use write_tables for labels of nodes")
        fields["label"] = str(label.flatten()[0])
    return json.dumps(fields)


def write_tables(data: Data, folder: Path) -> None:
    """Write one graph with labels of nodes as nodes.csv and edges.csv, which `node_classification` reads with
    data.numbers=true. A node in no mask has the split none. Features of edges are left out.

    Raises DataError as `graph_of_data` does, and for a graph without a label for each node.
    """
    fields, labels = _fields(data), _array(data, "y")
    graph, _ = graph_of({name: fields[name] for name in ("nodes", "edges")}, "the graph")
    if labels is None or labels.shape != (len(graph.ids),):
        raise DataError(f"the graph has {len(graph.ids)} nodes and no label for each: set data.y to one label for each")
    splits = np.full(len(graph.ids), "none", dtype=object)
    for mask, split in MASKS.items():
        if (chosen := _array(data, mask)) is not None:
            if chosen.shape != (len(graph.ids),):
                raise DataError(
                    f"{mask} has the shape {' x '.join(map(str, chosen.shape))} for {len(graph.ids)} nodes: choose one "
                    f"of several splits, as in data.{mask} = data.{mask}[:, 0]"
                )
            splits[chosen.astype(bool)] = split
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "nodes.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["node", "label", "split", "words"])
        for name, label, split, row in zip(graph.ids, labels.tolist(), splits, graph.features, strict=True):
            table.writerow([name, label, split, " ".join(f"{number:.9g}" for number in row)])
    with (folder / "edges.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["source", "target"], *graph.edges.tolist()])


def _fields(data: Data) -> dict[str, Any]:
    features, edges, of_edges = (_array(data, name) for name in ("x", "edge_index", "edge_attr"))
    if features is None:
        raise DataError("the graph has no node features: set data.x, to ones if nodes have none")
    fields = {"nodes": features.tolist(), "edges": [] if edges is None else edges.T.tolist()}
    if of_edges is not None:
        fields["edge_features"] = of_edges.reshape(len(of_edges), -1).tolist()
    return fields


def _array(data: Data, name: str) -> NDArray[Any] | None:
    found = getattr(data, name, None)
    return None if found is None else np.asarray(found.detach().cpu().numpy())
