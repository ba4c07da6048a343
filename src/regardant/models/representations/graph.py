"""Nodes of a graph to vectors: features through one matrix, edges as pairs that may attend to each other.

Velickovic et al. 2018, "Graph attention networks", https://arxiv.org/abs/1710.10903: attention of each node to itself
and to its neighbours. The graph belongs to the model: an input is a list of its nodes, all of them or a part, with the
edges among them.

Time and memory: a list of T nodes has a mask of T x T, 7 MB for the 2,708 nodes of Cora. On a CPU attention computes
the pairs of a sparse mask alone (`attention.listed_pairs`); an accelerator computes all.

Shape legend: B batch, T nodes of a list, V nodes of the graph, F features, S structural numbers.
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
"""Number in place of a node behind a list that is shorter than others of its batch."""


@dataclass(frozen=True, eq=False)
class GraphTensors:
    """A graph as a model reads it."""

    features: Float[Tensor, "V F"]
    adjacency: Bool[Tensor, "V V"]
    """True for neighbours, and for a node and itself."""
    structure: Float[Tensor, "V S"]
    """Numbers that tell a node's place in the graph; the last ones are parts of eigenvectors."""
    num_eigenvectors: int
    """Number of columns of `structure` whose sign means nothing."""


class GraphNodes(Representation):
    """A linear projection of the features of each node, and of its structural numbers.

    In training each eigenvector has a random sign, drawn anew for each batch: the sign of an eigenvector means nothing.

    Raises:
        ValueError: positions, which nodes have none of.
    """

    unit = "node"
    reads_order = False

    features: Tensor
    adjacency: Tensor
    structure: Tensor

    def __init__(self, shape: InputShape, graph: GraphTensors, feature_dropout: float) -> None:
        super().__init__(shape)
        if shape.positions.acts_on != "nowhere":
            raise ValueError(
                f"nodes have no order that {type(shape.positions).__name__} positions could tell: set "
                "model.positions={kind: none}; input.degree, input.random_walk and input.eigenvectors tell a node's "
                "place in the graph"
            )
        self.register_buffer("features", graph.features, persistent=False)
        self.register_buffer("adjacency", graph.adjacency, persistent=False)
        self.register_buffer("structure", graph.structure, persistent=False)
        self.num_eigenvectors = graph.num_eigenvectors
        self.feature_dropout = Dropout(feature_dropout)
        self.projection = nn.Linear(graph.features.shape[1], shape.element_size)
        if numbers := graph.structure.shape[1]:
            self.structure_projection = nn.Linear(numbers, shape.element_size, bias=False)
            self.signs = Dropout(0.5)  # of ones: zeros and twos, which the dropout key repeats in a resumed run

    def embed(self, inputs: Int[Tensor, "B T"]) -> Vectors:
        """Return the vectors of nodes by number, with the pairs that share an edge."""
        real = inputs != PADDING
        nodes = inputs.clamp(min=0)
        values = self.projection(self.feature_dropout(F.embedding(nodes, self.features)))
        if self.structure.shape[1]:
            values = values + self.structure_projection(self._structure()[nodes])
        pairs = torch.stack([self.adjacency[row][:, row] for row in nodes])
        return Vectors(values, real, pairs=pairs)

    def _structure(self) -> Tensor:
        if not (self.training and self.num_eigenvectors):
            return self.structure
        signs = self.signs(self.structure.new_ones(self.num_eigenvectors)) - 1
        ones = signs.new_ones(self.structure.shape[1] - self.num_eigenvectors)
        return self.structure * torch.cat([ones, signs])


def graph_nodes(graph: GraphTensors, feature_dropout: float) -> RepresentationBuilder:
    """Return the builder of a projection of a graph's nodes; a feature is zeroed in training with this chance."""
    return partial(GraphNodes, graph=graph, feature_dropout=feature_dropout)
