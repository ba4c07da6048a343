"""Graph convolution against its formula, and where it is refused."""

import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.layers.graph_convolution import GraphConvolutionConfig


def symmetric(size, share, seed=0):
    drawn = torch.rand(size, size, generator=torch.Generator().manual_seed(seed)) < share
    return drawn | drawn.T | torch.eye(size, dtype=torch.bool)


def by_loops(x, weight, bias, pairs):
    """D^-1/2 (A + I) D^-1/2 x W + b, an edge at a time."""
    values, degrees = x @ weight.T, pairs.sum(1).tolist()
    found = torch.zeros_like(values)
    for node in range(len(x)):
        for neighbour in range(len(x)):
            if pairs[node, neighbour]:
                found[node] += values[neighbour] / (degrees[node] * degrees[neighbour]) ** 0.5
    return found + bias


@pytest.mark.parametrize("share", [0.3, 0.005], ids=["many edges", "few edges"])
def test_a_node_sums_its_neighbours_by_the_degrees_of_both(share):
    torch.manual_seed(0)
    mixer, x = GraphConvolutionConfig().build(8, max_length=60, causal=False), torch.randn(1, 60, 8)
    torch.nn.init.normal_(mixer.bias)
    pairs = symmetric(60, share)
    view = View(pairs=pairs[None, None])
    assert (view.listed_pairs(x[:, None], x[:, None]) is None) == (share == 0.3)
    with torch.no_grad():
        assert_close(mixer(x, view)[0], by_loops(x[0], mixer.projection.weight, mixer.bias, pairs))


def test_padding_is_no_neighbour():
    torch.manual_seed(0)
    mixer, x = GraphConvolutionConfig().build(8, max_length=6, causal=False), torch.randn(1, 6, 8)
    pairs = symmetric(6, 0.4)
    real = torch.arange(6)[None] < 4
    with torch.no_grad():
        found = mixer(x, View(pairs=pairs[None, None], keys=real))[:, :4]
        assert_close(found, mixer(x[:, :4], View(pairs=pairs[None, None, :4, :4])))


def test_without_pairs_every_node_is_a_neighbour():
    mixer, x = GraphConvolutionConfig().build(8, max_length=6, causal=False), torch.randn(2, 6, 8)
    every = View(pairs=torch.ones(1, 1, 6, 6, dtype=torch.bool))
    assert_close(mixer(x, View()), mixer(x, every))


def test_padding_alone_leaves_every_node_a_vector_of_its_own():
    mixer, x = GraphConvolutionConfig().build(8, max_length=6, causal=False), torch.randn(2, 6, 8)
    real = torch.arange(6)[None] < torch.tensor([[4], [6]])
    every = View(keys=real, pairs=torch.ones(1, 1, 6, 6, dtype=torch.bool))
    found = mixer(x, View(keys=real))
    assert found.shape == x.shape
    assert_close(found, mixer(x, every))


def test_a_decoder_cannot_have_it():
    with pytest.raises(ValueError, match=r"^graph_convolution sums over all neighbours, .*: use it in an encoder$"):
        GraphConvolutionConfig().build(8, max_length=6, causal=True)
    with pytest.raises(ValueError, match=r"^graph_convolution has no state between steps: use it in an encoder$"):
        GraphConvolutionConfig().build(8, max_length=6, causal=False).start(4)
