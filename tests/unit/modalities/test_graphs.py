"""Small graphs as numbers of their nodes, and as a model reads them."""

import re

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regardant.data.graphs import Graph
from regardant.data.labelled_graphs import parse_graph
from regardant.errors import DataError, RunError
from regardant.modalities import GraphsModalityConfig
from regardant.models.representations import InputShape
from regardant.positions.none import NoPositions


def graph(features, edges, of_edges=None):
    ids = [str(number) for number in range(len(features))]
    of_edges = None if of_edges is None else np.array(of_edges, np.float32)
    return Graph(ids, np.array(features, np.float32), np.array(edges, int).reshape(-1, 2), of_edges)


LINE = graph([[1, 5], [2, 5], [6, 5], [3, 5]], [(0, 1), (1, 2)], [[1, 2], [3, 4]])
PAIR = graph([[0, 5], [4, 5]], [(0, 1)], [[7, 8]])


def codec(**fields):
    return GraphsModalityConfig(**{"max_nodes": 6} | fields).fit([LINE, PAIR])


def representation(given, num_heads=2):
    torch.manual_seed(0)
    module = given.representation()(InputShape(8, NoPositions(), num_heads=num_heads))
    if num_heads is not None and given.config.distance_bias:
        torch.nn.init.normal_(module.distance_bias)
    return module.eval()


def read(given, *graphs):
    return representation(given)(given.collate(given.encode(graphs)))


def test_features_are_scaled_by_the_training_nodes():
    found = codec()
    assert found.statistics.mean == pytest.approx([16 / 6, 5]) and found.statistics.deviation[1] == 1
    (encoded,) = found.encode([PAIR])
    assert encoded.dtype == np.float32 and encoded.shape == (2, 1 + 2 + 6 + 12)
    every = np.concatenate(found.encode([LINE, PAIR]))[:, 1]
    assert (every.mean(), every.std()) == pytest.approx((0, 1), abs=1e-6)


def test_a_graph_is_restored_from_its_numbers(tmp_path):
    found = codec(degree=True)
    for given in (LINE, PAIR):
        (encoded,) = found.encode([given])
        assert found.decoded(encoded).edges.tolist() == given.edges.tolist()
        again = found.parse(found.argument(encoded, tmp_path, "a"))
        np.testing.assert_allclose(again.features, given.features, atol=1e-5)
        np.testing.assert_allclose(again.edge_features, given.edge_features)
    assert found.labels(encoded) == ["0", "1"]


def test_nodes_attend_within_reach_and_never_to_padding():
    vectors = read(codec(), LINE, PAIR)
    assert vectors.real.tolist() == [[True] * 4, [True, True, False, False]]
    assert vectors.pairs[0].int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    assert not vectors.pairs[1, :2, 2:].any()
    assert read(codec(reach=2), LINE).pairs[0, 0].tolist() == [True, True, True, False]
    assert read(codec(reach=None), LINE).pairs is None


def test_distances_and_features_of_edges_are_biases_of_each_head():
    given = codec(distance_bias=1)
    module = representation(given)
    bias = module(given.collate(given.encode([LINE, PAIR]))).edges
    itself, one, further, nowhere = module.distance_bias
    assert bias.shape == (2, 2, 4, 4)
    assert_close(bias[0, :, 0, 0], itself)
    assert_close(bias[0, :, 0, 2], further)
    assert_close(bias[0, :, 0, 3], nowhere)
    for row, nodes, features in ((0, (0, 1), [1.0, 2]), (0, (2, 1), [3.0, 4]), (1, (1, 0), [7.0, 8])):
        assert_close(bias[row, :, *nodes], one + module.edge_bias(torch.tensor(features)))


def test_without_heads_or_features_there_is_no_bias():
    module = representation(codec(distance_bias=1), num_heads=None)
    assert not module.biases_scores and {*module.state_dict()} == {"projection.weight", "projection.bias"}
    plain = GraphsModalityConfig().fit([graph([[1], [2]], [(0, 1)])])
    assert not representation(plain).biases_scores and read(plain, graph([[1]], [])).edges is None


def test_eigenvectors_that_a_graph_lacks_are_zeros():
    found = codec(eigenvectors=3, degree=True)
    structure = found.encode([PAIR])[0][:, 3:7]
    assert (structure[:, :2] != 0).all() and (structure[:, 2:] == 0).all()


def test_a_codec_is_kept_in_a_run(tmp_path):
    found = codec(random_walk=2)
    found.save(tmp_path)
    loaded = GraphsModalityConfig(max_nodes=6, random_walk=2).load(tmp_path)
    np.testing.assert_array_equal(loaded.encode([LINE])[0], found.encode([LINE])[0])
    assert loaded.describe() == "graphs of at most 6 nodes of 2 features, edges of 2"
    (tmp_path / "graphs.json").write_text("{}")
    with pytest.raises(RunError, match=r"graphs\.json is damaged .*restore it or train again"):
        GraphsModalityConfig().load(tmp_path)


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ("a text", "an item of type str is no graph: set data.kind=graphs, or another input.kind"),
        (graph([[1]], []), "graph 1 has nodes of 1 features, the first training graph of 2: give all nodes equally"),
        (graph([[1, 2], [1, 2]], [(0, 1)]), "graph 1 has edges of 0 features, the first training graph with edges"),
        (graph([[1, 2]] * 7, []), "a graph has 7 nodes, and at most 6 are read: raise input.max_nodes"),
    ],
)
def test_a_graph_that_does_not_fit_is_one_line(item, told):
    with pytest.raises(DataError, match=re.escape(told)):
        codec().encode([item])


def test_the_first_training_graph_with_edges_decides_their_features():
    lonely = graph([[1, 2], [3, 4]], [])
    found = GraphsModalityConfig(max_nodes=6).fit([lonely, LINE, PAIR])
    assert found.statistics.edge_features == 2
    assert [len(one) for one in found.encode([lonely, LINE])] == [2, 4]
    loop = parse_graph('{"nodes": [[1, 2]], "edges": [[0, 0]], "edge_features": [[1, 2, 3]]}')
    assert found.encode([loop])[0].shape == (1, 1 + 2 + 6 + 12)


def test_a_graph_is_read_whole_or_refused():
    found = codec()
    (encoded,) = found.encode([LINE])
    assert found.cut(encoded, 4) is encoded
    with pytest.raises(DataError, match=r"^a graph has 4 nodes, of which at most 3 are read: raise model\.max_length"):
        found.cut(encoded, 3)
    with pytest.raises(DataError, match=r"^there are no training graphs: give some$"):
        GraphsModalityConfig().fit([])


def test_a_graph_of_one_node_is_read():
    vectors = read(codec(reach=None, distance_bias=2, eigenvectors=2), parse_graph('{"nodes": [[1, 2]]}'))
    assert vectors.values.isfinite().all() and vectors.edges.shape == (1, 2, 1, 1)
