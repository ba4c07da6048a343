"""One graph: an item is a list of its nodes, all of them or a part, an element is a node.

Shape legend: V nodes of the graph, T nodes of a list, N lists.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regardant.config.did_you_mean import did_you_mean
from regardant.data.graph_structure import (
    drawing_places,
    laplacian_eigenvectors,
    log_degrees,
    return_probabilities,
    smoothed,
)
from regardant.data.graphs import Graph
from regardant.errors import ConfigError, DataError, RunError
from regardant.modalities.base import Codec, ModalityConfig
from regardant.models.representations import GraphTensors, RepresentationBuilder, graph_nodes
from regardant.models.representations.graph import PADDING
from regardant.pictures import Layout

GRAPH = "graph.npz"


class StructureConfig(ModalityConfig):
    """Base of modalities of graphs, with structural numbers, which encode a node's place in its graph."""

    degree: bool = False
    """Add the logarithm of 1 + the number of neighbours to the structural numbers."""

    random_walk: int = Field(0, ge=0)
    """Number of steps of a random walk: adds the probabilities of return to its first node after 1, 2, ... steps."""

    eigenvectors: int = Field(0, ge=0)
    """Number of eigenvectors of the normalised Laplacian to add, with random signs in training."""

    @property
    def num_structural(self) -> int:
        """Number of structural numbers of a node."""
        return int(self.degree) + self.random_walk + self.eigenvectors

    def structure(self, graph: Graph) -> NDArray[np.float32]:
        """Return the structural numbers of nodes [V, S], eigenvectors last, padded with zeros if there are too few."""
        columns = [np.zeros((len(graph.ids), 0), dtype=np.float32)]
        if self.degree:
            columns.append(log_degrees(graph))
        if self.random_walk:
            columns.append(return_probabilities(graph, self.random_walk))
        if self.eigenvectors:
            columns.append(laplacian_eigenvectors(graph, self.eigenvectors))
        found = np.concatenate(columns, 1)
        return np.pad(found, ((0, 0), (0, self.num_structural - found.shape[1])))


class GraphModalityConfig(StructureConfig):
    """Nodes of one graph, which is kept in the run."""

    kind: Literal["graph"] = "graph"

    files = (GRAPH,)

    normalise: bool = True
    """Divide the features of each node by the sum of their absolute values."""

    smoothing: int = Field(0, ge=0)
    """Number of steps of simple spectral graph convolution: averages the features of each node over neighbourhoods of
    1, 2, ... steps. 0: its own features alone."""

    feature_dropout: float = Field(0.0, ge=0, lt=1)
    """Probability that a feature of a node is zeroed in training."""

    edge_dropout: float = Field(0.0, ge=0, lt=1)
    """Probability that an edge is removed in training. Every node still attends to itself."""

    def fit(self, items: Iterable[Graph]) -> "GraphCodec":
        (graph,) = items
        if self.eigenvectors >= (nodes := len(graph.ids)):
            raise ConfigError(
                f"input.eigenvectors: given {self.eigenvectors}; a graph of {nodes} nodes has at most {nodes - 1}"
            )
        return GraphCodec(self, graph, self.structure(graph))

    def load(self, run: Path) -> "GraphCodec":
        try:
            with np.load(run / GRAPH, allow_pickle=False) as kept:
                graph = Graph(kept["ids"].tolist(), kept["features"], kept["edges"])
                return GraphCodec(self, graph, kept["structure"])
        except (OSError, EOFError, ValueError, KeyError) as error:
            raise RunError(f"{run / GRAPH} is damaged ({error}): restore it or train again") from error


class GraphCodec(Codec):
    """Lists of nodes of one graph to node numbers."""

    unit = "node"
    item_name = "the graph"

    def __init__(self, config: GraphModalityConfig, graph: Graph, structure: NDArray[np.float32]) -> None:
        self.config, self.graph, self.structure = config, graph, structure

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number of each node by its name."""
        return {name: number for number, name in enumerate(self.graph.ids)}

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """Neighbours of each node in ascending order [V]."""
        found: list[list[int]] = [[] for _ in self.graph.ids]
        for first, second in self.graph.edges.tolist():
            found[first].append(second)
            found[second].append(first)
        return [sorted(one) for one in found]

    def encode(self, items: Sequence[Graph | int]) -> list[NDArray[Any]]:
        """Return the numbers of the nodes: all nodes of the graph, or one alone. Raises DataError for another graph."""
        for item in items:
            if not isinstance(item, int) and not item.equals(self.graph):
                raise DataError("the graph differs from that of the run that training starts from: train without it")
        every = np.arange(len(self.graph.ids), dtype=np.int32)
        return [every[item : item + 1] if isinstance(item, int) else every for item in items]

    def parse(self, argument: str) -> int:
        """Return the number of a node. Raises DataError for a name that no node has."""
        name = argument.strip()
        if name not in self.numbers:
            near = did_you_mean(name, self.graph.ids)
            raise DataError(f"{name!r} is none of the graph's {len(self.numbers):,} nodes: give the id of one{near}")
        return self.numbers[name]

    def around(self, node: int, hops: int, most: int) -> NDArray[np.int32]:
        """Return a node and its neighbours within `hops` edges, nearest first, at most `most` nodes together."""
        distances, waiting = {node: 0}, deque([node])
        while waiting and len(distances) < most:
            here = waiting.popleft()
            for near in self.neighbours[here] if distances[here] < hops else ():
                if near not in distances:
                    distances[near] = distances[here] + 1
                    waiting.append(near)
        return np.array(list(distances)[:most], dtype=np.int32)

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return node numbers [N, T], padded with -1."""
        rows = [torch.from_numpy(nodes.astype(np.int64)) for nodes in encoded]
        return pad_sequence(rows, batch_first=True, padding_value=PADDING)

    def representation(self) -> RepresentationBuilder:
        features = self.graph.features
        if self.config.normalise:
            features = features / np.maximum(np.abs(features).sum(1, keepdims=True), np.finfo(np.float32).tiny)
        if self.config.smoothing:
            features = smoothed(features, self.graph, self.config.smoothing)
        adjacency = self.graph.adjacency | np.eye(len(features), dtype=bool)
        graph = GraphTensors(
            torch.from_numpy(features),
            torch.from_numpy(adjacency),
            torch.from_numpy(self.graph.edges),
            torch.from_numpy(self.structure),
            self.config.eigenvectors,
        )
        config = self.config
        return graph_nodes(graph, feature_dropout=config.feature_dropout, edge_dropout=config.edge_dropout)

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        """Return the names of the nodes."""
        return [self.graph.ids[number] for number in encoded.tolist()]

    def layout(self, encoded: NDArray[Any]) -> Layout:
        """Return a drawing of the edges among the nodes."""
        at = {number: place for place, number in enumerate(encoded.tolist())}
        joined = ((at[one], at[near]) for one in at for near in self.neighbours[one] if near in at)
        return graph_layout(self.labels(encoded), [(one, other) for one, other in joined if one < other])

    def describe(self) -> str:
        nodes, features = self.graph.features.shape
        blank = int((self.graph.features == 0).all(1).sum())
        alone = int((self.graph.degrees == 0).sum())
        return (
            f"a graph of {nodes:,} nodes and {len(self.graph.edges):,} edges, {features:,} features; {alone:,} nodes "
            f"have no edge, {blank:,} no feature"
        )

    def save(self, run: Path) -> None:
        graph = self.graph
        np.savez_compressed(
            run / GRAPH, ids=np.array(graph.ids), features=graph.features, edges=graph.edges, structure=self.structure
        )


def graph_layout(labels: Sequence[str], edges: Sequence[tuple[int, int]]) -> Layout:
    """Return the drawing of nodes with these names, joined by edges."""
    return Layout(labels, 1, len(labels), places=drawing_places(len(labels), edges), edges=[(a, b) for a, b in edges])
