"""Small graphs to vectors of their nodes: a projection of features; distances and edge features as a bias on scores.

The bias by the number of edges between two nodes: Ying et al. 2021, "Do Transformers really perform bad for graph
representation?", https://arxiv.org/abs/2106.05234, equation 6. Features of an edge give each head a bias on the scores
of its two nodes; all layers share both.

Shape legend: B graphs, T nodes of the largest, L most nodes of a graph, F features of a node, S structural numbers,
D features of an edge, H heads.
"""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.models.representations.base import InputShape, RepresentationBuilder
from regardant.models.representations.graph import NodeVectors
from regardant.models.vectors import Vectors


@dataclass(frozen=True)
class GraphShape:
    """Layout of a node's numbers: 1 for a node that is no padding, F features, S structural numbers, L distances to the
    nodes of its graph (-1: no path, or no node), and L times D features of the edges to them."""

    features: int
    structure: int
    num_eigenvectors: int
    """Number of eigenvectors, the last structural numbers, whose signs are arbitrary."""
    edge_features: int
    most_nodes: int
    reach: int | None
    """Maximum distance, in edges, of the nodes that a node attends to. None: a node attends to all."""
    distance_bias: int
    """Largest distance, in edges, with a bias of its own. 0: distances have no bias."""

    @property
    def parts(self) -> list[int]:
        """Sizes of the parts of a node's numbers."""
        pairs = self.most_nodes
        return [1, self.features, self.structure, pairs, pairs * self.edge_features]


class SmallGraphs(NodeVectors):
    """Nodes of several graphs, each graph a batch element."""

    def __init__(self, shape: InputShape, graph: GraphShape) -> None:
        sizes = {"num_features": graph.features, "num_structural": graph.structure}
        super().__init__(shape, **sizes, num_eigenvectors=graph.num_eigenvectors)
        self.graph = graph
        self.biases_scores = shape.num_heads is not None and bool(graph.distance_bias or graph.edge_features)
        if shape.num_heads is not None and graph.distance_bias:
            # One for the node itself, one for each distance, one for all larger distances, one for no path.
            self.distance_bias = nn.Parameter(torch.zeros(graph.distance_bias + 3, shape.num_heads))
        if shape.num_heads is not None and graph.edge_features:
            self.edge_bias = nn.Linear(graph.edge_features, shape.num_heads, bias=False)

    def embed(self, inputs: Float[Tensor, "B T N"]) -> Vectors:
        """Return the vectors of nodes, with the pairs within reach and the bias on their scores."""
        graph = self.graph
        real, features, structure, distances, edges = inputs.split(graph.parts, 2)
        nodes = inputs.shape[1]
        steps = distances[:, :, :nodes].long()
        pairs = None if graph.reach is None else (steps >= 0) & (steps <= graph.reach)
        bias = self._bias(steps, edges) if self.biases_scores else None
        return Vectors(self.project(features, structure), real[:, :, 0] > 0, pairs=pairs, edges=bias)

    def _bias(self, steps: Int[Tensor, "B T T"], edges: Float[Tensor, "B T LD"]) -> Float[Tensor, "B H T T"]:
        bias = torch.zeros((), device=steps.device)
        if self.graph.distance_bias:
            furthest = self.graph.distance_bias + 1
            bias = self.distance_bias[torch.where(steps < 0, furthest + 1, steps.clamp(max=furthest))]
        if self.graph.edge_features:
            of_pairs = edges.unflatten(2, (self.graph.most_nodes, self.graph.edge_features))
            bias = bias + self.edge_bias(of_pairs[:, :, : steps.shape[1]])
        return bias.movedim(3, 1)


def small_graphs(graph: GraphShape) -> RepresentationBuilder:
    """Return the builder of a projection of the nodes of small graphs."""
    return partial(SmallGraphs, graph=graph)
