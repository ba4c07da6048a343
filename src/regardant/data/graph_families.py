"""Random graphs of four families with equal numbers of edges, which differ only in the way nodes are joined.

random          edges between any nodes (Erdős and Rényi 1959)
preferential    each new node joins two nodes, preferably those with many edges (Barabási and Albert 1999)
small_world     a ring, each node joined to the two next on both sides, one edge in ten to another node (Watts and
                Strogatz 1998)
communities     two halves with nine edges in ten inside of them
"""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from regardant.data.graphs import Graph, merge_edges
from regardant.data.labelled import Labelled, LabelledConfig, Sets

if TYPE_CHECKING:
    from networkx import Graph as Drawn

FEWEST, MOST = 16, 32
"""Smallest and largest number of nodes of a graph."""

REWIRED = 0.1
"""Share of the edges of a small world that leave the ring."""

INSIDE = 0.9
"""Share of the edges of communities that stay inside of one."""


class GraphFamiliesConfig(LabelledConfig):
    """Random graphs of four families, which are their labels. Every node has the same feature, 1."""

    kind: Literal["graph_families"] = "graph_families"

    size: int = Field(2000, gt=1)
    """Graphs to train and to validate on."""

    test_size: int = Field(400, gt=0)
    """Graphs to test on."""

    def read(self, seed: int) -> Sets:
        random, names = Random(seed), list(FAMILIES)
        items = [_drawn(names[number % len(names)], random) for number in range(self.size + self.test_size)]
        sets = self.split_off(items[self.test_size :], seed)
        return {**sets, "test": items[: self.test_size]}


def _drawn(name: str, random: Random) -> Labelled:
    nodes = 2 * random.randint(FEWEST // 2, MOST // 2)
    found = FAMILIES[name](nodes, random)
    order = random.sample(range(nodes), nodes)
    edges, _ = merge_edges((order[one], order[other]) for one, other in found.edges)
    ids = [str(number) for number in range(nodes)]
    return Graph(ids, np.ones((nodes, 1), np.float32), np.array(sorted(edges), np.int64).reshape(-1, 2)), name


def _random(nodes: int, random: Random) -> "Drawn":
    import networkx

    return networkx.gnm_random_graph(nodes, 2 * nodes, random)


def _preferential(nodes: int, random: Random) -> "Drawn":
    import networkx

    return networkx.barabasi_albert_graph(nodes, 2, random, networkx.complete_graph(5))


def _small_world(nodes: int, random: Random) -> "Drawn":
    import networkx

    return networkx.watts_strogatz_graph(nodes, 4, REWIRED, random)


def _communities(nodes: int, random: Random) -> "Drawn":
    import networkx

    inside = round(INSIDE * nodes)  # in each half
    halves = networkx.disjoint_union(*(networkx.gnm_random_graph(nodes // 2, inside, random) for _ in range(2)))
    while halves.number_of_edges() < 2 * nodes:
        halves.add_edge(random.randrange(nodes // 2), random.randrange(nodes // 2, nodes))
    return halves


FAMILIES: dict[str, Callable[[int, Random], "Drawn"]] = {
    "random": _random,
    "preferential": _preferential,
    "small_world": _small_world,
    "communities": _communities,
}
"""Generators by name of the family: each makes a graph of a number of nodes, with twice as many edges."""
