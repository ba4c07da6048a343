"""A graph as a model reads it, and lists of its nodes."""

import re

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regardant.data.graph_structure import smoothed
from regardant.data.graphs import Graph
from regardant.errors import DataError, RunError
from regardant.layers.dropout import share_key
from regardant.modalities import GraphModalityConfig
from regardant.models.representations import InputShape
from regardant.positions.none import NoPositions

EDGES = [(0, 1), (1, 2), (1, 3), (3, 4)]


def graph():
    features = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    features[5] = 0
    return Graph(["a", "b", "c", "d", "e", "alone"], features, np.array(EDGES))


def codec(**fields):
    return GraphModalityConfig(**fields).fit([graph()])


def representation(**fields):
    torch.manual_seed(0)
    return codec(**fields).representation()(InputShape(8, NoPositions()))


def test_features_are_divided_by_the_sum_of_their_sizes():
    given = graph().features
    found = representation().features
    assert_close(found.abs().sum(1), torch.tensor([1.0, 1, 1, 1, 1, 0]))
    assert_close(found[0], torch.from_numpy(given[0] / np.abs(given[0]).sum()))
    assert_close(representation(normalise=False).features, torch.from_numpy(given))


def test_features_are_smoothed_after_they_are_divided():
    found = representation(smoothing=2).features
    assert_close(found, torch.from_numpy(smoothed(representation().features.numpy(), graph(), 2)))
    assert not torch.equal(found, representation().features)


def test_nodes_attend_to_themselves_and_their_neighbours():
    vectors = representation().eval()(torch.tensor([[1, 3, 5], [4, 3, -1]]))
    assert vectors.real.tolist() == [[True, True, True], [True, True, False]]
    assert vectors.pairs[0].int().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert vectors.pairs[1, :2, :2].all()


def test_vectors_are_projections_of_features_and_structure():
    module = representation(degree=True, eigenvectors=2).eval()
    found = module(torch.tensor([[2, 0]])).values[0]
    expected = module.projection(module.features) + module.structure @ module.structure_projection.weight.T
    assert_close(found, expected[[2, 0]])
    assert_close(module.structure[:, 0], torch.log1p(torch.tensor([1.0, 3, 1, 2, 1, 0])))


def test_eigenvectors_alone_get_random_signs_which_a_key_repeats():
    module = representation(degree=True, eigenvectors=3).train()
    structure = module.structure[None].expand(2, -1, -1)
    key, seen = share_key(module), set()
    for update in range(20):
        key.update = update
        signs = (module.with_random_signs(structure) / structure).nan_to_num(1.0)[:, 1]
        assert (signs[:, 0] == 1).all() and (signs.abs() == 1).all()
        seen |= {tuple(row) for row in signs.tolist()}
        assert_close(module.with_random_signs(structure), module.with_random_signs(structure))
    assert len(seen) > 3
    assert_close(module.eval().with_random_signs(structure), structure)


def test_edges_are_removed_in_training_alone_and_in_both_directions():
    module, nodes = representation(edge_dropout=0.5).train(), torch.arange(6)[None]
    key, seen = share_key(module), set()
    whole = module.adjacency
    for update in range(20):
        key.update = update
        pairs = module.embed(nodes).pairs[0]
        assert torch.equal(pairs, pairs.T) and not (pairs & ~whole).any() and pairs.diagonal().all()
        assert torch.equal(pairs, module.embed(nodes).pairs[0])
        seen.add(int(pairs.sum()))
    assert len(seen) > 2
    assert torch.equal(module.eval().embed(nodes).pairs[0], whole)


def test_the_graph_is_not_among_the_weights():
    assert set(representation(degree=True).state_dict()) == {
        "projection.weight",
        "projection.bias",
        "structure_projection.weight",
    }


def test_nodes_near_a_node_come_in_the_order_of_their_distance():
    found = codec()
    assert found.labels(found.around(0, 2, 60)) == ["a", "b", "c", "d"]
    assert found.labels(found.around(4, 3, 60)) == ["e", "d", "b", "a", "c"]
    assert found.labels(found.around(4, 3, 3)) == ["e", "d", "b"]
    assert found.labels(found.around(1, 0, 60)) == ["b"]
    assert found.labels(found.around(5, 3, 60)) == ["alone"]


def test_lists_of_nodes_are_padded_and_named():
    found = codec(random_walk=2)
    assert found.collate([np.array([3, 1]), np.array([2])]).tolist() == [[3, 1], [2, -1]]
    assert found.labels(np.array([5, 0])) == ["alone", "a"]
    assert found.encode([graph(), 3])[0].tolist() == [0, 1, 2, 3, 4, 5] and found.encode([3])[0].tolist() == [3]
    assert found.describe() == "a graph of 6 nodes and 4 edges, 3 features; 1 nodes have no edge, 1 no feature"


def test_a_run_keeps_the_graph(tmp_path):
    kept = codec(eigenvectors=2, degree=True)
    kept.save(tmp_path)
    found = kept.config.load(tmp_path)
    assert found.graph.equals(kept.graph)
    np.testing.assert_array_equal(found.structure, kept.structure)
    (tmp_path / "graph.npz").write_bytes(b"no graph")
    with pytest.raises(RunError, match=r"graph\.npz is damaged \(.*\): restore it or train again"):
        kept.config.load(tmp_path)


def test_a_node_is_named_by_its_id_or_refused():
    assert codec().parse(" d ") == 3
    with pytest.raises(DataError, match=re.escape("'alon' is none of the graph's 6 nodes")) as refusal:
        codec().parse("alon")
    assert "alone" in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_graph_that_is_too_large_and_another_graph_are_one_line():
    with pytest.raises(DataError, match=r"the graph has 6 nodes, of which at most 5 are read: raise model\.max_length"):
        codec().cut(np.arange(6), 5)
    other = Graph(graph().ids, graph().features, np.array(EDGES[:-1]))
    with pytest.raises(DataError, match="the graph differs from that of the run that training starts from"):
        codec().encode([other])
