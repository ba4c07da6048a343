"""What every model of a graph keeps: its nodes have no order, and a layer carries news over one edge."""

import re

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regardant.attention import AttentionConfig, ScaledDotProductConfig
from regardant.attention.additive import AdditiveConfig
from regardant.data.graphs import Graph
from regardant.layers.convolution import ConvolutionMixerConfig
from regardant.layers.dense import DenseMixerConfig
from regardant.layers.feed_forward import ConvolutionalFeedForwardConfig
from regardant.layers.graph_convolution import GraphConvolutionConfig
from regardant.modalities import GraphModalityConfig
from regardant.models.encoder_only import BagOfVectorsConfig, EncoderOnlyConfig
from regardant.models.heads import ElementClassConfig
from regardant.models.recurrent import RecurrentEncoderConfig
from regardant.positions import PositionsConfig
from regardant.positions.none import NoneConfig

LAYERS, CLASSES, FEATURES = 2, 3, 4
MIXERS = [ScaledDotProductConfig(), AdditiveConfig(), GraphConvolutionConfig()]
STRUCTURES = {
    "no structure": {},
    "degree": {"degree": True},
    "random walk": {"random_walk": 4},
    "eigenvectors": {"eigenvectors": 3},
    "all": {"degree": True, "random_walk": 2, "eigenvectors": 2},
}


def graph(edges, nodes):
    features = np.random.default_rng(0).random((nodes, FEATURES), dtype=np.float32)
    return Graph([f"n{one}" for one in range(nodes)], features, np.array(sorted(edges)))


def few_edges():
    """A line of 60 nodes with shortcuts: its pairs are so few that attention lists them."""
    return graph({*((one, one + 1) for one in range(59)), (3, 40), (10, 22), (50, 58)}, 60)


def many_edges():
    drawn = np.random.default_rng(3).choice(10, (12, 2)).tolist()
    return graph(
        {(one, one + 1) for one in range(9)} | {(min(pair), max(pair)) for pair in drawn if len({*pair}) > 1}, 10
    )


def transformer(**fields):
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 16, "num_layers": LAYERS, "max_length": 64, "dropout": 0.0}
    return EncoderOnlyConfig(**({"positions": NoneConfig()} | sizes | fields))


def build(config, given, structure=None, weights=None):
    codec = GraphModalityConfig(**structure or {}).fit([given])
    torch.manual_seed(0)
    model = config.build(codec.representation(), lambda d_model: ElementClassConfig().build(d_model, CLASSES)).eval()
    if weights is not None:
        model.load_state_dict(weights)
    return model


def answers(model, nodes):
    with torch.inference_mode():
        return model.scores(input=torch.arange(nodes)[None])[0]


def permuted(given, order):
    """The same graph; node i was node order[i]."""
    at = np.argsort(order)
    edges = np.sort(at[given.edges], 1)
    return Graph([given.ids[one] for one in order], given.features[order], edges[np.lexsort(edges.T)])


@pytest.mark.parametrize("given", [few_edges(), many_edges()], ids=["few edges", "many edges"])
@pytest.mark.parametrize("mixer", MIXERS, ids=lambda config: config.kind)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_other_numbers_of_nodes_and_edges_change_no_answer(given, mixer, structure):
    nodes = len(given.ids)
    order = np.random.default_rng(1).permutation(nodes)
    model = build(transformer(self_attention=mixer), given, STRUCTURES[structure])
    other = build(transformer(self_attention=mixer), permuted(given, order), STRUCTURES[structure], model.state_dict())
    found = answers(model, nodes)
    assert found.std(0).min() > 1e-3
    assert_close(answers(other, nodes), found[order], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mixer", MIXERS, ids=lambda config: config.kind)
def test_a_removed_edge_changes_the_answers_of_nodes_near_it_alone(mixer):
    given = few_edges()
    removed = (30, 31)
    others = [edge for edge in given.edges.tolist() if tuple(edge) != removed]
    model = build(transformer(self_attention=mixer), given)
    before = answers(model, 60)
    after = answers(build(transformer(self_attention=mixer), graph(others, 60), weights=model.state_dict()), 60)
    changed = set(((before - after).abs().amax(1) > 1e-5).nonzero().flatten().tolist())
    assert set(removed) <= changed <= set(range(30 - LAYERS, 31 + LAYERS + 1))


@pytest.mark.parametrize("mixer", MIXERS, ids=lambda config: config.kind)
def test_a_node_is_answered_alike_in_the_graph_and_among_the_nodes_near_it(mixer):
    """A node two edges away decides, and through its number of neighbours in a convolution those next to it."""
    given = few_edges()
    model = build(transformer(self_attention=mixer), given)
    codec = GraphModalityConfig().fit([given])
    near = [codec.around(node, LAYERS + 1, 60) for node in (0, 30, 22)]
    with torch.inference_mode():
        found = model.scores(input=codec.collate(near))
    assert len({len(one) for one in near}) > 1
    assert_close(found[:, 0], answers(model, 60)[[0, 30, 22]])


def test_a_bag_reads_no_edges():
    model = build(BagOfVectorsConfig(d_model=16), many_edges())
    other = build(BagOfVectorsConfig(d_model=16), graph([(0, 1)], 10), weights=model.state_dict())
    assert_close(answers(model, 10), answers(other, 10))


NO_ORDER = "mixes elements by their order, and a node has none: choose attention or graph_convolution"


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (RecurrentEncoderConfig(), "a recurrent network reads elements in order, and a node has none: choose another"),
        (transformer(self_attention=ConvolutionMixerConfig()), f"convolution {NO_ORDER}"),
        (transformer(self_attention=DenseMixerConfig()), f"dense {NO_ORDER}"),
        (transformer(feed_forward=ConvolutionalFeedForwardConfig(kernel=3)), f"convolution {NO_ORDER}"),
        *(
            (transformer(self_attention=AttentionConfig.kinds()[kind]()), "cannot honour view.pairs")
            for kind in ("linear", "performer", "window", "strided", "sparse")
        ),
        *(
            (transformer(positions=config()), "nodes have no order that .* positions could tell: set model.positions=")
            for kind, config in PositionsConfig.kinds().items()
            if kind not in ("none", "one_hot")
        ),
    ],
)
def test_a_model_that_goes_by_the_order_is_refused_in_one_line(config, told):
    with pytest.raises(ValueError, match=told if ".*" in told else re.escape(told)) as refusal:
        build(config, many_edges())
    assert "\n" not in str(refusal.value)


def test_every_parameter_learns():
    model = build(transformer(), few_edges(), STRUCTURES["all"]).train()
    targets = torch.arange(60)[None] % CLASSES
    model(input=torch.arange(60)[None], targets=targets).total.backward()
    assert [name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()] == []
