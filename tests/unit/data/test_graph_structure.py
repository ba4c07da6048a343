"""Numbers of a node's place in a graph, against their definitions."""

import numpy as np

from regardant.data.graph_structure import (
    distances,
    laplacian_eigenvectors,
    log_degrees,
    return_probabilities,
    smoothed,
)
from regardant.data.graphs import Graph

TRIANGLE_WITH_A_TAIL = [(0, 1), (0, 2), (1, 2), (2, 3)]


def graph(edges, nodes):
    features = np.ones((nodes, 1), dtype=np.float32)
    return Graph([str(one) for one in range(nodes)], features, np.array(edges).reshape(-1, 2))


def test_degrees_count_neighbours():
    found = log_degrees(graph(TRIANGLE_WITH_A_TAIL, 5))
    np.testing.assert_allclose(found, np.log([[3], [3], [4], [2], [1]]), rtol=1e-6)


def test_a_walk_is_back_as_often_as_when_it_is_walked():
    """All walks of three steps, one by one."""
    given, steps = graph(TRIANGLE_WITH_A_TAIL, 5), 3
    expected = np.zeros((5, steps))

    def walk(first, at, chance, step):
        if step == steps:
            return
        near = np.flatnonzero(given.adjacency[at])
        for node in near:
            here = chance / len(near)
            expected[first, step] += here * (node == first)
            walk(first, node, here, step + 1)

    for node in range(5):
        walk(node, node, 1.0, 0)
    np.testing.assert_allclose(return_probabilities(given, steps), expected, atol=1e-6)


def test_eigenvectors_solve_the_equation_and_have_one_sign():
    given = graph([*TRIANGLE_WITH_A_TAIL, (3, 4)], 5)
    vectors = laplacian_eigenvectors(given, 3)
    scale = 1 / np.sqrt(given.degrees)
    laplacian = np.eye(5) - scale[:, None] * given.adjacency * scale
    values = (vectors * (laplacian @ vectors)).sum(0) / 5
    np.testing.assert_allclose(laplacian @ vectors, vectors * values, atol=1e-5)
    np.testing.assert_allclose((vectors**2).mean(0), 1, atol=1e-5)
    assert (np.diff(values) > 0).all() and values[0] > 0.1
    assert ((vectors.astype(float) ** 3).sum(0) > -1e-3).all()


def test_there_are_fewer_eigenvectors_than_nodes():
    assert laplacian_eigenvectors(graph(TRIANGLE_WITH_A_TAIL, 5), 9).shape == (5, 4)


def test_distances_are_those_of_the_shortest_paths():
    found = distances(graph([*TRIANGLE_WITH_A_TAIL, (4, 5)], 6))
    assert found[0].tolist() == [0, 1, 1, 2, -1, -1]
    assert found[3].tolist() == [2, 2, 1, 0, -1, -1]
    assert (found == found.T).all() and found[4, 5] == 1


def test_smoothed_features_are_means_over_steps():
    """Against the definition, with dense matrices."""
    given = graph(TRIANGLE_WITH_A_TAIL, 5)
    features = np.random.default_rng(0).random((5, 3), dtype=np.float32)
    pairs = given.adjacency + np.eye(5)
    scale = pairs.sum(1) ** -0.5
    step = scale[:, None] * pairs * scale
    expected = 0.05 * features + 0.95 / 3 * (step + step @ step + step @ step @ step) @ features
    np.testing.assert_allclose(smoothed(features, given, 3), expected, rtol=1e-5)
    np.testing.assert_allclose(smoothed(features, given, 3)[4], features[4], rtol=1e-5)
