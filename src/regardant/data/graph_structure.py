"""Positional features of the nodes of a graph, and distances between nodes, from the edges alone.

Attention along edges sees the neighbours of a node, but not its position in the graph. Dwivedi et al. 2022, "Graph
neural networks with learnable structural and positional representations", https://arxiv.org/abs/2110.07875, section
3.2; Dwivedi et al. 2023, "Benchmarking graph neural networks", https://arxiv.org/abs/2003.00982 (eigenvectors).

Dense matrices: the time grows with the third power of the number of nodes (seconds for a few thousand).

Shape legend: V nodes, K numbers of a node.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regardant.data.graphs import Graph

SHARE = 0.05
"""Share of a node's own features in smoothed ones."""


def log_degrees(graph: Graph) -> NDArray[np.float32]:
    """Return log(1 + degree) of each node [V, 1]."""
    return np.log1p(graph.degrees)[:, None].astype(np.float32)


def return_probabilities(graph: Graph, steps: int) -> NDArray[np.float32]:
    """Return the probabilities that a random walk is back at its first node after 1, 2, ... steps [V, K].

    Those of a node without an edge are 0.
    """
    walk = graph.adjacency / np.maximum(graph.degrees, 1)[:, None]
    at, found = walk, []
    for step in range(steps):
        at = at @ walk if step else walk
        found.append(np.diagonal(at))
    return np.stack(found, 1).astype(np.float32)


def distances(graph: Graph) -> NDArray[np.int64]:
    """Return the numbers of edges on the shortest paths between nodes [V, V]; -1 where there is no path."""
    from scipy.sparse.csgraph import shortest_path

    found = shortest_path(graph.adjacency, directed=False, unweighted=True)
    return np.where(np.isfinite(found), found, -1).astype(np.int64)


def smoothed(features: NDArray[np.float32], graph: Graph, steps: int) -> NDArray[np.float32]:
    """Return features [V, F] averaged over neighbourhoods of 1, 2, ... steps, with SHARE of a node's own.

    Zhu and Koniusz 2021, "Simple spectral graph convolution", https://openreview.net/forum?id=CYO5T-YjWZV, equation 9:
    the mean of S^k X over the steps k, where S is D^-1/2 (A + I) D^-1/2.
    """
    from scipy.sparse import csr_array

    adjacency = csr_array(graph.adjacency | np.eye(len(graph.ids), dtype=bool))
    scale = (1 / np.sqrt(graph.degrees + 1)).astype(np.float32)
    step, total = features, np.zeros_like(features)
    for _ in range(steps):
        step = scale[:, None] * (adjacency @ (scale[:, None] * step))
        total += step
    found: NDArray[np.float32] = SHARE * features + (1 - SHARE) / steps * total
    return found


def drawing_places(nodes: int, edges: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """Return a layout, (x, y) from 0 to 1, with joined nodes near each other (Fruchterman and Reingold 1991)."""
    import networkx

    drawn = networkx.Graph()
    drawn.add_nodes_from(range(nodes))
    drawn.add_edges_from(edges)
    found = np.array(list(networkx.spring_layout(drawn, seed=0, iterations=100, method="force").values()))
    low, high = found.min(0), found.max(0)
    return [(round(float(x), 4), round(float(y), 4)) for x, y in (found - low) / np.maximum(high - low, 1e-9)]


def laplacian_eigenvectors(graph: Graph, count: int) -> NDArray[np.float32]:
    """Return the eigenvectors [V, K] of the lowest eigenvalues of the normalised Laplacian, without the first.

    K is `count`, at most V - 1.

    A vector has length sqrt(V), and the sign that makes the sum of its cubes positive. Vectors of equal eigenvalues, as
    in a graph of several components, have no defined order.
    """
    nodes = len(graph.ids)
    scale = 1 / np.sqrt(np.maximum(graph.degrees, 1))
    laplacian = np.eye(nodes) - scale[:, None] * graph.adjacency * scale
    _, vectors = np.linalg.eigh(laplacian)
    vectors = vectors[:, 1 : count + 1] * np.sqrt(nodes)
    return (vectors * np.where((vectors**3).sum(0) < 0, -1, 1)).astype(np.float32)
