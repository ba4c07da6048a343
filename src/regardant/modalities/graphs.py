"""Small graphs: an item is a whole graph, an element a node.

Shape legend: N graphs, T nodes, L most nodes of a graph, F features of a node, S structural numbers, D features of an
edge.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regardant.data.graph_structure import distances
from regardant.data.graphs import Graph
from regardant.data.labelled_graphs import parse_graph
from regardant.errors import DataError
from regardant.modalities.base import Codec
from regardant.modalities.graph import StructureConfig, graph_layout
from regardant.modalities.statistics import save_statistics, saved_statistics
from regardant.models.representations import GraphShape, RepresentationBuilder, small_graphs
from regardant.pictures import Layout

STATISTICS = "graphs.json"

LEAST_DEVIATION = 1e-6
"""Standard deviation below which a feature counts as constant and is not divided."""


@dataclass(frozen=True)
class Statistics:
    """Mean and standard deviation of each feature over all nodes of the training graphs."""

    mean: Sequence[float]
    deviation: Sequence[float]
    edge_features: int
    """Number of features of an edge."""


class GraphsModalityConfig(StructureConfig):
    """Graphs of a few dozen nodes, each with features, and edges with or without features."""

    kind: Literal["graphs"] = "graphs"

    files = (STATISTICS,)

    max_nodes: int = Field(64, gt=0, le=1024)
    """Maximum number of nodes of a graph. Each node is stored with max_nodes * (1 + features of an edge) numbers."""

    reach: int | None = Field(1, gt=0)
    """Maximum distance, in edges, of the nodes that a node attends to, besides itself. Empty: no maximum."""

    distance_bias: int = Field(0, ge=0)
    """Largest distance, in edges, between nodes with a learned bias of its own on attention scores; larger distances
    share one, and so do pairs without a path. 0: no bias."""

    def fit(self, items: Iterable[Any]) -> "GraphsCodec":
        graphs = [_graph(item) for item in items]
        if not graphs:
            raise DataError("there are no training graphs: give some")
        edge_features = _edge_features(next((graph for graph in graphs if len(graph.edges)), graphs[0]))
        _require_alike(graphs, graphs[0].features.shape[1], edge_features)
        nodes = np.concatenate([graph.features for graph in graphs], dtype=np.float64)
        deviation = nodes.std(0)
        deviation[deviation < LEAST_DEVIATION] = 1.0
        return GraphsCodec(self, Statistics(nodes.mean(0).tolist(), deviation.tolist(), edge_features))

    def load(self, run: Path) -> "GraphsCodec":
        with saved_statistics(run / STATISTICS) as saved:
            statistics = Statistics(**saved)
        return GraphsCodec(self, statistics)


class GraphsCodec(Codec):
    """Graphs to the numbers of their nodes, laid out as in `GraphShape`."""

    unit = "node"
    item_name = "a graph"

    def __init__(self, config: GraphsModalityConfig, statistics: Statistics) -> None:
        self.config, self.statistics = config, statistics
        self.shape = GraphShape(
            features=len(statistics.mean),
            structure=config.num_structural,
            num_eigenvectors=config.eigenvectors,
            edge_features=statistics.edge_features,
            most_nodes=config.max_nodes,
            reach=config.reach,
            distance_bias=config.distance_bias,
        )

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return the numbers of nodes [T, ...]. Raises DataError for items that are no graphs, or of other features."""
        graphs = [_graph(item) for item in items]
        _require_alike(graphs, self.shape.features, self.shape.edge_features)
        return [self._encoded(graph) for graph in graphs]

    def parse(self, argument: str) -> Graph:
        """Return the graph of a JSON object with nodes and edges. Raises DataError."""
        return parse_graph(argument)

    def title(self, argument: str) -> str:
        graph = self.parse(argument)
        return f"A graph of {len(graph.ids):,} nodes and {len(graph.edges):,} edges"

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str:
        """Return the graph as a JSON object."""
        graph = self.decoded(encoded)
        given = {"nodes": np.round(graph.features.astype(float), 6).tolist(), "edges": graph.edges.tolist()}
        if graph.edge_features is not None:
            given["edge_features"] = np.round(graph.edge_features.astype(float), 6).tolist()
        return json.dumps(given)

    def decoded(self, encoded: NDArray[Any]) -> Graph:
        """Return the graph that `encode` was given."""
        count = len(encoded)
        _, features, _, steps, of_edges = np.split(encoded, np.cumsum(self.shape.parts)[:-1], 1)
        mean, deviation = (np.array(of, np.float32) for of in (self.statistics.mean, self.statistics.deviation))
        edges = np.argwhere(np.triu(steps[:, :count] == 1)).astype(np.int64)
        if size := self.shape.edge_features:
            of_edges = of_edges.reshape(count, self.shape.most_nodes, size)[edges[:, 0], edges[:, 1]]
        ids = [str(number) for number in range(count)]
        return Graph(ids, features * deviation + mean, edges, of_edges if size else None)

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return the numbers of nodes [N, T, ...], padded with zeros."""
        return pad_sequence([torch.from_numpy(np.array(one)) for one in encoded], batch_first=True)

    def representation(self) -> RepresentationBuilder:
        return small_graphs(self.shape)

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        """Return the numbers of the nodes, from 0."""
        return [str(number) for number in range(len(encoded))]

    def layout(self, encoded: NDArray[Any]) -> Layout:
        """Return a drawing of the graph."""
        return graph_layout(self.labels(encoded), self.decoded(encoded).edges.tolist())

    def describe(self) -> str:
        shape = self.shape
        return (
            f"graphs of at most {shape.most_nodes} nodes of {shape.features} features, edges of {shape.edge_features}"
        )

    def save(self, run: Path) -> None:
        save_statistics(run / STATISTICS, self.statistics)

    def _encoded(self, graph: Graph) -> NDArray[np.float32]:
        count, most = len(graph.ids), self.shape.most_nodes
        if count > most:
            raise DataError(f"a graph has {count:,} nodes, and at most {most:,} are read: raise input.max_nodes")
        mean, deviation = (np.array(of, np.float32) for of in (self.statistics.mean, self.statistics.deviation))
        steps = np.full((count, most), -1, np.float32)
        steps[:, :count] = distances(graph)
        of_edges = np.zeros((count, most, self.shape.edge_features), np.float32)
        if graph.edge_features is not None and len(graph.edges):
            first, second = graph.edges.T
            of_edges[first, second] = of_edges[second, first] = graph.edge_features
        real, structure = np.ones((count, 1), np.float32), self.config.structure(graph)
        parts = [real, (graph.features - mean) / deviation, structure, steps, of_edges.reshape(count, -1)]
        return np.concatenate(parts, 1, dtype=np.float32)


def _graph(item: Any) -> Graph:
    if not isinstance(item, Graph):
        raise DataError(
            f"an item of type {type(item).__name__} is no graph: set data.kind=graphs, or another input.kind"
        )
    return item


def _edge_features(graph: Graph) -> int:
    return 0 if graph.edge_features is None else graph.edge_features.shape[1]


def _require_alike(graphs: Sequence[Graph], features: int, edge_features: int) -> None:
    for number, graph in enumerate(graphs, 1):
        if graph.features.shape[1] != features:
            raise DataError(
                f"graph {number:,} has nodes of {graph.features.shape[1]} features, the first training graph of "
                f"{features}: give all nodes equally many"
            )
        if (given := _edge_features(graph)) != edge_features and len(graph.edges):
            raise DataError(
                f"graph {number:,} has edges of {given} features, the first training graph with edges has edges of "
                f"{edge_features}: give all edges equally many"
            )
