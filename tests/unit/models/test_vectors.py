"""A graph through an encoder: pairs say which nodes meet, edges are added to their scores."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from regardant.attention import KERNELS, ScaledDotProduct
from regardant.models import EncoderDecoderConfig
from regardant.models.stacks import Encoder
from regardant.models.vectors import Vectors
from regardant.positions import PositionsConfig

NODES, SIZE, HEADS = 6, 16, 4

LINKS = [(0, 1), (1, 2), (3, 4), (4, 5)]
"""Two graphs of three nodes, side by side in one batch element."""

PAIRS = torch.eye(NODES, dtype=torch.bool)
for one, other in LINKS:
    PAIRS[one, other] = PAIRS[other, one] = True

every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def encoder(kernel="sdpa", positions="none", num_layers=2, **fields):
    torch.manual_seed(0)
    config = EncoderDecoderConfig(
        preset=None,
        d_model=SIZE,
        num_heads=HEADS,
        d_ff=32,
        dropout=0.0,
        positions=PositionsConfig.kinds()[positions](),
        encoder={"num_layers": num_layers},
        **fields,
    )
    made = Encoder(config, config.encoder, config.build_positions(NODES, causal=False), NODES)
    for module in made.modules():
        if isinstance(module, ScaledDotProduct):
            module.kernel = KERNELS[kernel]
    return made.eval()


def graph(pairs=PAIRS, **fields):
    """A batch of two graphs of six nodes, of which the second has four: what is padded has links too."""
    generator = torch.Generator().manual_seed(1)
    real = torch.arange(NODES) < torch.tensor([[6], [4]])
    return Vectors(torch.randn(2, NODES, SIZE, generator=generator), real, pairs=pairs.expand(2, -1, -1), **fields)


def edges(heads=HEADS):
    return torch.randn(2, heads, NODES, NODES, generator=torch.Generator().manual_seed(2))


def changed_by(encoder, x, node):
    """[B, T]: whether another vector of this node changes the output at each node."""
    values = x.values.clone()
    values[:, node] += torch.randn(SIZE, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        return (encoder(replace(x, values=values)).values - encoder(x).values).abs().amax(-1) > 1e-5


@every_kernel
def test_a_node_changes_those_that_a_path_as_long_as_the_layers_leads_to(kernel):
    """In the second element nodes 4 and 5 are padding: nothing they are leads anywhere."""
    one, two = encoder(kernel, num_layers=1), encoder(kernel)
    assert changed_by(one, graph(), 0).tolist() == [[True, True, False, False, False, False]] * 2
    assert changed_by(two, graph(), 0).tolist() == [[True, True, True, False, False, False]] * 2
    assert changed_by(two, graph(), 3)[0].tolist() == [False, False, False, True, True, True]
    assert changed_by(two, graph(), 4)[0].tolist() == [False, False, False, True, True, True]
    assert changed_by(two, graph(), 4)[1, :4].tolist() == [False] * 4


@every_kernel
def test_a_row_says_what_its_node_may_attend_to(kernel):
    directed = torch.eye(NODES, dtype=torch.bool)
    directed[2, 0] = True  # 2 attends to 0, and 0 does not attend to 2
    assert changed_by(encoder(kernel), graph(directed), 0)[0].nonzero().flatten().tolist() == [0, 2]
    assert changed_by(encoder(kernel), graph(directed), 2)[0].nonzero().flatten().tolist() == [2]


@every_kernel
def test_without_positions_nodes_in_another_order_come_to_the_same(kernel):
    x, order = graph(edges=edges()), torch.tensor([4, 0, 5, 2, 1, 3])
    shuffled = Vectors(
        x.values[:, order],
        x.real[:, order],
        pairs=x.pairs[:, order][:, :, order],
        edges=x.edges[:, :, order][..., order],
    )
    with torch.no_grad():
        made = encoder(kernel)
        found, expected = made(shuffled), made(x).values[:, order]
    assert_close(found.values[shuffled.real], expected[shuffled.real])
    assert found.pairs is shuffled.pairs and found.edges is shuffled.edges and found.real is shuffled.real


@every_kernel
def test_pairs_that_may_all_meet_are_none_at_all(kernel):
    made, everything = encoder(kernel), torch.ones(NODES, NODES, dtype=torch.bool)
    with torch.no_grad():
        assert_close(made(graph(everything)).values, made(replace(graph(), pairs=None)).values)


@every_kernel
@pytest.mark.parametrize("heads", [1, HEADS])
def test_an_edge_far_below_zero_is_a_pair_that_does_not_meet(kernel, heads):
    x, made = graph(), encoder(kernel)
    apart = torch.where(PAIRS, 0.0, -1e4).expand(2, heads, -1, -1)
    with torch.no_grad():
        found, expected = made(replace(x, pairs=None, edges=apart)), made(x)
    assert_close(found.values[x.real], expected.values[x.real])


@every_kernel
def test_every_head_has_its_own_edges(kernel):
    x, of_heads = graph(edges=edges()), edges()
    of_heads[:, 1, 0, 1] += 1
    with torch.no_grad():
        layer = encoder(kernel, num_layers=1)
        attention, mixed = layer.layers[0].self_attention.mechanism, []
        attention.register_forward_hook(lambda module, inputs, output: mixed.append(output))
        layer(x), layer(replace(x, edges=of_heads))
    changed = (mixed[0] - mixed[1]).abs().amax(-1)[0] > 1e-6  # [H, T]
    assert changed.nonzero().tolist() == [[1, 0]]


@every_kernel
def test_edges_stand_beside_the_bias_of_positions(kernel):
    made, plain, at = encoder(kernel, "alibi"), encoder(kernel), torch.arange(NODES)
    distances = made.positions.bias(at, at).expand(2, -1, -1, -1)
    assert distances.any()
    with torch.no_grad():
        x = graph(edges=edges())
        assert_close(made(x).values, plain(replace(x, edges=x.edges + distances)).values)
        assert_close(made(replace(x, edges=0 * x.edges)).values, made(replace(x, edges=None)).values)


@every_kernel
def test_edges_are_learned(kernel):
    learned, direction = edges().requires_grad_(), torch.randn(SIZE, generator=torch.Generator().manual_seed(4))
    x = graph(edges=learned)
    (encoder(kernel)(x).values[x.real] @ direction).sum().backward()
    met = PAIRS & x.real[:, None] & x.real[..., None]
    weighed = (met & (met.sum(-1, keepdim=True) > 1))[:, None].expand_as(learned)  # of one key alone the weight is one
    assert torch.equal(learned.grad != 0, weighed)


def test_edges_learn_the_same_where_layers_are_computed_again():
    found = []
    for checkpointing in (False, True):
        learned = edges().requires_grad_()
        made = encoder(activation_checkpointing=checkpointing).train()
        made(graph(edges=2 * learned)).values.square().sum().backward()
        found.append(learned.grad)
    assert found[0].any()
    assert_close(*found)


def test_edges_that_learn_are_refused_by_reversible_residuals_in_training_alone():
    made = encoder(residual="reversible")
    x = graph(edges=2 * edges().requires_grad_())
    assert made(x).values.isfinite().all()
    with pytest.raises(
        ValueError, match="reversible residuals give no gradient to a learned bias of edges: set residual=add"
    ):
        made.train()(x)
    assert made(replace(x, edges=x.edges.detach())).values.requires_grad
