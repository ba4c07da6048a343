"""Nodes of a graph to vectors: a projection of their features, with edges as pairs that may attend to each other.

Velickovic et al. 2018, "Graph attention networks", https://arxiv.org/abs/1710.10903: attention of each node to itself
and to its neighbours. The graph belongs to the model: an input is a list of its nodes, all of them or a part, with the
edges among them.

Time and memory: a list of T nodes has a mask of T x T, 7 MB for the 2,708 nodes of Cora. On a CPU attention computes
the pairs of a sparse mask alone (`attention.listed_pairs`); an accelerator computes all.

Shape legend: B batch, T nodes of a list, V nodes of the graph, F features, S structural numbers, E edges.
"""

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regardant.layers.dropout import Dropout
from regardant.models.representations.base import InputShape, Representation, RepresentationBuilder
from regardant.models.vectors import Vectors

PADDING = -1
"""Node number of padding at the end of the shorter lists of a batch."""


@dataclass(frozen=True, eq=False)
class GraphTensors:
    """A graph as a model reads it."""

    features: Float[Tensor, "V F"]
    adjacency: Bool[Tensor, "V V"]
    """True for neighbours, and for a node and itself."""
    edges: Int[Tensor, "E 2"]
    """Both nodes of each edge."""
    structure: Float[Tensor, "V S"]
    """Structural numbers, which encode a node's place in the graph; the last ones are components of eigenvectors."""
    num_eigenvectors: int
    """Number of eigenvectors, the last columns of `structure`, whose signs are arbitrary."""


class NodeVectors(Representation):
    """Base of representations of nodes: a projection of their features, and one of their structural numbers.

    In training each eigenvector has a random sign, drawn for each batch element: its sign is arbitrary.

    Raises:
        ValueError: a position scheme is given, and nodes have no order.
    """

    unit = "node"
    reads_order = False

    def __init__(self, shape: InputShape, *, num_features: int, num_structural: int, num_eigenvectors: int) -> None:
        super().__init__(shape)
        if shape.positions.acts_on != "nowhere":
            raise ValueError(
                f"nodes have no order that {type(shape.positions).__name__} positions could encode: set "
                "model.positions={kind: none}; input.degree, input.random_walk and input.eigenvectors encode a node's "
                "place in the graph"
            )
        self.num_eigenvectors = num_eigenvectors
        self.projection = nn.Linear(num_features, shape.element_size)
        if num_structural:
            self.structure_projection = nn.Linear(num_structural, shape.element_size, bias=False)
            self.signs = Dropout(0.5)  # ones become 0 or 2, which the dropout key reproduces in a resumed run

    def project(self, features: Float[Tensor, "B T F"], structure: Float[Tensor, "B T S"]) -> Float[Tensor, "B T M"]:
        """Return the vectors of nodes from their features and their structural numbers."""
        values: Tensor = self.projection(features)
        if structure.shape[2]:
            values = values + self.structure_projection(self.with_random_signs(structure))
        return values

    def with_random_signs(self, structure: Float[Tensor, "B T S"]) -> Float[Tensor, "B T S"]:
        """Return the structural numbers; in training their last columns, the eigenvectors, have random signs."""
        if not (self.training and self.num_eigenvectors):
            return structure
        rows, _, numbers = structure.shape
        signs = self.signs(structure.new_ones(rows, 1, self.num_eigenvectors)) - 1
        ones = signs.new_ones(rows, 1, numbers - self.num_eigenvectors)
        return structure * torch.cat([ones, signs], 2)


class GraphNodes(NodeVectors):
    """The nodes of one graph, which belongs to the model.

    In training edges are removed at random, drawn for each batch, in both directions at once (Rong et al. 2020,
    "DropEdge", https://arxiv.org/abs/1907.10903, section 3).
    """

    features: Tensor
    adjacency: Tensor
    edges: Tensor
    structure: Tensor

    def __init__(self, shape: InputShape, graph: GraphTensors, feature_dropout: float, edge_dropout: float) -> None:
        sizes = {"num_features": graph.features.shape[1], "num_structural": graph.structure.shape[1]}
        super().__init__(shape, **sizes, num_eigenvectors=graph.num_eigenvectors)
        self.register_buffer("features", graph.features, persistent=False)
        self.register_buffer("adjacency", graph.adjacency, persistent=False)
        self.register_buffer("edges", graph.edges, persistent=False)
        self.register_buffer("structure", graph.structure, persistent=False)
        self.feature_dropout, self.edge_dropout = Dropout(feature_dropout), Dropout(edge_dropout)

    def embed(self, inputs: Int[Tensor, "B T"]) -> Vectors:
        """Return the vectors of nodes, given by number, with the pairs that share an edge."""
        real = inputs != PADDING
        nodes = inputs.clamp(min=0)
        values = self.project(self.feature_dropout(F.embedding(nodes, self.features)), self.structure[nodes])
        adjacency = self._adjacency()
        return Vectors(values, real, pairs=torch.stack([adjacency[row][:, row] for row in nodes]))

    def _adjacency(self) -> Bool[Tensor, "V V"]:
        if not (self.training and self.edge_dropout.rate):
            return self.adjacency
        kept = self.edge_dropout(self.structure.new_ones(len(self.edges))) > 0
        first, second = self.edges.T
        one_way = self.adjacency.index_put((first, second), kept)
        return one_way.index_put((second, first), kept)


def graph_nodes(graph: GraphTensors, *, feature_dropout: float, edge_dropout: float) -> RepresentationBuilder:
    """Return the builder of a projection of a graph's nodes. In training a feature is zeroed, and an edge removed, with
    these probabilities."""
    return partial(GraphNodes, graph=graph, feature_dropout=feature_dropout, edge_dropout=edge_dropout)
