import pytest
import torch

from regardant.attention import ScaledDotProduct, View, masks

LENGTH = 4
Q = K = V = torch.eye(LENGTH)[None, None]
REAL = torch.tensor([[True, True, True, False]])


def seen(view, q=Q, k=K):
    """Rows of 1 where a query gives a key any weight."""
    return (ScaledDotProduct(LENGTH).weights(q, k, view)[0, 0] > 0).int().tolist()


def test_padding_is_hidden_from_every_query():
    assert seen(masks.padding(REAL)) == [[1, 1, 1, 0]] * 4


def test_causal_is_the_lower_triangle():
    assert seen(masks.causal()) == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]


def test_a_window_is_a_band():
    assert seen(masks.window(LENGTH, 1)) == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]


def test_a_window_is_made_where_it_is_needed():
    assert masks.window(LENGTH, 1, device="meta").pairs.device.type == "meta"


@pytest.mark.parametrize("batched", [False, True])
def test_adjacency_follows_edges(batched):
    edges = torch.zeros(LENGTH, LENGTH).bool()
    edges[0, 2] = edges[2, 0] = edges[1, 3] = True
    edges = edges[None] if batched else edges
    assert seen(masks.adjacency(edges)) == [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 0, 0, 1]]
    assert seen(masks.adjacency(edges, self_loops=False))[3] == [0, 0, 0, 0]


def test_a_node_without_neighbours_mixes_to_zeros():
    edges = torch.ones(LENGTH, LENGTH).bool()
    edges[3] = False
    mixed = ScaledDotProduct(LENGTH)(Q, K, V, masks.adjacency(edges, self_loops=False))
    assert mixed[0, 0, 3].tolist() == [0, 0, 0, 0] and mixed[0, 0, :3].sum() == pytest.approx(3)


def test_pairs_are_taken_as_they_are():
    allowed = torch.rand(1, 1, LENGTH, LENGTH) < 0.7
    assert seen(masks.pairs(allowed)) == allowed[0, 0].int().tolist()


def test_together_hides_what_any_of_them_hides():
    joined = masks.combine(masks.causal(), masks.padding(REAL), masks.window(LENGTH, 1), masks.window(LENGTH, 2))
    assert seen(joined) == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0]]
    assert joined.asked == {"causal", "keys", "pairs"}
    assert masks.combine().asked == frozenset()


def test_a_bias_cannot_be_joined():
    with pytest.raises(ValueError, match="bias"):
        masks.combine(View(bias=lambda queries, keys: torch.zeros(1, 4, 4)), masks.causal())
