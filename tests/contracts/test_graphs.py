"""What every model of graphs keeps: nodes have no order, and a layer carries news over one edge.

The nodes of one graph come first, then small graphs.
"""

import re

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regardant.attention import AttentionConfig, ScaledDotProductConfig
from regardant.attention.additive import AdditiveConfig
from regardant.attention.linformer import LinformerConfig
from regardant.attention.local_predictive import LocalPredictiveConfig
from regardant.attention.location import LocationConfig
from regardant.attention.window import WindowConfig
from regardant.data.graphs import Graph
from regardant.data.vocabulary import SOS
from regardant.layers.convolution import ConvolutionMixerConfig
from regardant.layers.dense import DenseMixerConfig
from regardant.layers.feed_forward import ConvolutionalFeedForwardConfig
from regardant.layers.graph_convolution import GraphConvolutionConfig
from regardant.modalities import GraphModalityConfig, GraphsModalityConfig
from regardant.models import next_token, tokens
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.models.encoder_only import BagOfVectorsConfig, EncoderOnlyConfig
from regardant.models.heads import ElementClassConfig, SequenceClassConfig
from regardant.models.hierarchical import HierarchicalConfig
from regardant.models.recurrent import RecurrentConfig, RecurrentEncoderConfig
from regardant.models.recurrent.decoders import LuongConfig
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


def hierarchical():
    return HierarchicalConfig(**transformer().model_dump(exclude={"kind"}), segment=4)


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


NO_ORDER = "mixes elements by their order, and a node has none: choose attention that compares elements (such as"


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (RecurrentEncoderConfig(), "a recurrent network reads elements in order, and a node has none: choose another"),
        (transformer(self_attention=ConvolutionMixerConfig()), f"convolution {NO_ORDER}"),
        (transformer(self_attention=DenseMixerConfig()), f"dense {NO_ORDER}"),
        (transformer(self_attention=LocationConfig()), f"location {NO_ORDER}"),
        (hierarchical(), "hierarchical cuts an input into segments by the order of its elements, and a node has none"),
        (transformer(feed_forward=ConvolutionalFeedForwardConfig(kernel=3)), f"convolution {NO_ORDER}"),
        *(
            (transformer(self_attention=AttentionConfig.kinds()[kind]()), "cannot honour view.pairs")
            for kind in ("linear", "performer", "window", "strided", "sparse")
        ),
        *(
            (
                transformer(positions=config()),
                "nodes have no order that .* positions could encode: set model.positions=",
            )
            for kind, config in PositionsConfig.kinds().items()
            if kind not in ("none", "one_hot")
        ),
    ],
)
def test_a_model_that_goes_by_the_order_is_refused_in_one_line(config, told):
    with pytest.raises(ValueError, match=told if ".*" in told else re.escape(told)) as refusal:
        build(config, many_edges())
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("pooling", ["first", "last"])
def test_a_head_that_reads_a_node_for_its_place_is_refused(pooling):
    codec = GraphModalityConfig().fit([few_edges()])
    with pytest.raises(ValueError, match=f"^pooling {pooling} reads an element by its position, and a node has none: "):
        transformer().build(
            codec.representation(), lambda d_model: SequenceClassConfig(pooling=pooling).build(d_model, CLASSES)
        )


def test_every_parameter_learns():
    model = build(transformer(), few_edges(), STRUCTURES["all"]).train()
    targets = torch.arange(60)[None] % CLASSES
    model(input=torch.arange(60)[None], targets=targets).total.backward()
    assert [name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()] == []


# small graphs

POOLINGS = ["mean", "max", "class_token"]
INPUTS = {
    "neighbours": {},
    "two edges away": {"reach": 2},
    "all nodes, by distance": {"reach": None, "distance_bias": 2},
    "structure": {"degree": True, "random_walk": 3},
}


def molecule(nodes, seed, numbers=2):
    """A ring with a few more edges, features on nodes and edges."""
    generator = np.random.default_rng(seed)
    drawn = {tuple(sorted(pair)) for pair in generator.choice(nodes, (3, 2)).tolist() if len({*pair}) > 1}
    edges = np.array(sorted(drawn | {tuple(sorted((one, (one + 1) % nodes))) for one in range(nodes)}))
    features = generator.normal(size=(nodes, FEATURES)).astype(np.float32)
    of_edges = generator.normal(size=(len(edges), numbers)).astype(np.float32) if numbers else None
    return Graph([str(one) for one in range(nodes)], features, edges, of_edges)


def reordered(given, order):
    """The same graph; node i was node order[i]."""
    edges = np.sort(np.argsort(order)[given.edges], 1)
    by_end = np.lexsort(edges.T[::-1])
    of_edges = None if given.edge_features is None else given.edge_features[by_end]
    return Graph(given.ids, given.features[order], edges[by_end], of_edges)


def reader(config, graphs, head=None, **fields):
    """A model of graphs whose biases are drawn, and what reads graphs in one batch."""
    codec = GraphsModalityConfig(max_nodes=12, **fields).fit(graphs)
    torch.manual_seed(0)
    head = head or SequenceClassConfig()
    model = config.build(codec.representation(), lambda d_model: head.build(d_model, CLASSES)).eval()
    if hasattr(model.input, "distance_bias"):
        torch.nn.init.normal_(model.input.distance_bias)

    def read(*given):
        with torch.inference_mode():
            return model.scores(input=codec.collate(codec.encode(given)))

    return model, read


SCORED = [ScaledDotProductConfig(), AdditiveConfig()]


@pytest.mark.parametrize("mixer", SCORED, ids=lambda config: config.kind)
@pytest.mark.parametrize("given", INPUTS)
def test_nodes_with_their_edges_in_another_order_have_the_same_answers(mixer, given):
    one = molecule(9, seed=1)
    order = np.random.default_rng(2).permutation(9)
    config = transformer(self_attention=mixer)
    _, read = reader(config, [one], ElementClassConfig(), **INPUTS[given])
    found = read(one)[0]
    assert found.std(0).min() > 1e-3
    assert_close(read(reordered(one, order))[0], found[order], rtol=1e-3, atol=1e-4)
    for pooling in POOLINGS:
        _, read = reader(config, [one], SequenceClassConfig(pooling=pooling), **INPUTS[given])
        assert_close(read(reordered(one, order)), read(one), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mixer", SCORED, ids=lambda config: config.kind)
def test_a_feature_of_an_edge_changes_the_answers_of_nodes_near_it_alone(mixer):
    one = molecule(12, seed=1)
    changed = one.edge_features.copy()
    changed[0] += 1
    _, read = reader(transformer(self_attention=mixer, num_layers=1), [one], ElementClassConfig())
    before, after = read(one, Graph(one.ids, one.features, one.edges, changed))
    moved = ((before - after).abs().amax(1) > 1e-5).nonzero().flatten().tolist()
    assert moved == one.edges[0].tolist()


def test_a_graph_is_answered_alike_alone_and_among_others():
    graphs = [molecule(nodes, seed=nodes) for nodes in (4, 12, 7)]
    for pooling in POOLINGS:
        for fields in INPUTS.values():
            _, read = reader(transformer(), graphs, SequenceClassConfig(pooling=pooling), **fields)
            assert_close(read(*graphs), torch.cat([read(one) for one in graphs]))


def test_every_parameter_of_small_graphs_learns():
    graphs = [molecule(nodes, seed=nodes) for nodes in (4, 12, 7)]
    codec = GraphsModalityConfig(max_nodes=12, reach=None, distance_bias=2, degree=True, eigenvectors=2).fit(graphs)
    config = transformer(self_attention=ScaledDotProductConfig())
    model = config.build(codec.representation(), lambda d_model: SequenceClassConfig().build(d_model, CLASSES))
    lonely = Graph(["0", "1"], graphs[0].features[:2], np.zeros((0, 2), int))  # for the bias of nodes without a path
    batch = codec.collate(codec.encode([*graphs, lonely]))
    model(input=batch, targets=torch.tensor([0, 1, 2, 0])).total.backward()
    assert [name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()] == []
    assert model.input.distance_bias.grad.any(1).all()


@pytest.mark.parametrize(
    ("config", "fields", "told"),
    [
        (transformer(self_attention=GraphConvolutionConfig()), {}, "graph_convolution has no scores that distances or"),
        (transformer(self_attention=AttentionConfig.kinds()["linear"]()), {}, "cannot honour view.bias, view.pairs"),
        (RecurrentEncoderConfig(), {}, "a recurrent network reads elements in order, and a node has none"),
        (hierarchical(), {"reach": None}, "hierarchical cuts an input into segments by the order of its elements"),
        (transformer(self_attention=LocationConfig()), {}, f"location {NO_ORDER}"),
        (transformer(positions=PositionsConfig.kinds()["sinusoidal"]()), {}, "set model.positions={kind: none}"),
    ],
)
def test_a_model_that_would_ignore_edges_is_refused(config, fields, told):
    with pytest.raises(ValueError, match=re.escape(told)) as refusal:
        reader(config, [molecule(6, seed=1)], **fields)
    assert "\n" not in str(refusal.value)


def test_a_convolution_reads_graphs_without_features_of_edges():
    one = molecule(9, seed=1, numbers=0)
    _, read = reader(transformer(self_attention=GraphConvolutionConfig()), [one], degree=True)
    assert_close(read(reordered(one, np.random.default_rng(2).permutation(9))), read(one), rtol=1e-3, atol=1e-4)


# texts from small graphs

VOCAB_SIZE = 12


def writer(self_attention=None, cross_attention=None, **fields):
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 16, "dropout": 0.0, "max_length": 12, "positions": NoneConfig()}
    encoder = {"num_layers": LAYERS, "self_attention": self_attention or ScaledDotProductConfig()}
    decoder = {"num_layers": 1, "cross_attention": cross_attention or ScaledDotProductConfig()}
    return EncoderDecoderConfig(
        **{"preset": None, "tie_embeddings": "target"} | sizes | fields, encoder=encoder, decoder=decoder
    )


def recurrent_writer(attention=None, **fields):
    sizes = {"embedding_size": 8, "hidden_size": 8, "dropout": 0.0, "max_length": 12, "tie_embeddings": "target"}
    return RecurrentConfig(**sizes, decoder=LuongConfig(attention=attention or ScaledDotProductConfig()), **fields)


def written(config, graphs):
    """A model that writes a text for a graph, and the scores of a text given graphs."""
    codec = GraphsModalityConfig(max_nodes=12).fit(graphs)
    torch.manual_seed(0)
    model = config.build(codec.representation(), tokens(VOCAB_SIZE), next_token(VOCAB_SIZE)).eval()
    text = torch.tensor([[SOS, 5, 6, 7]])

    def read(*given):
        with torch.inference_mode():
            return model.scores(codec.collate(codec.encode(given)), text.expand(len(given), -1))

    return model, read


@pytest.mark.parametrize("config", [writer(), recurrent_writer(encoder="none")], ids=lambda config: config.kind)
def test_a_text_is_written_alike_from_nodes_in_another_order(config):
    one = molecule(9, seed=1)
    _, read = written(config, [one])
    found, moved = read(one), read(reordered(one, np.random.default_rng(2).permutation(9)))
    assert found.std() > 1e-3
    assert_close(moved, found, rtol=1e-3, atol=1e-4)


BY_ORDER = "attends to a source by the order of its elements, and a node has none: choose a cross-attention that"


@pytest.mark.parametrize("numbers", [0, 2], ids=["edges without features", "edges with features"])
@pytest.mark.parametrize(
    ("config", "told"),
    [
        *((writer(mixer()), "") for mixer in (ConvolutionMixerConfig, DenseMixerConfig)),
        (writer(LocationConfig()), f"location {NO_ORDER}"),
        (writer(feed_forward=ConvolutionalFeedForwardConfig(kernel=3)), f"convolution {NO_ORDER}"),
        *((writer(AttentionConfig.kinds()[kind]()), "cannot honour view.") for kind in ("window", "linear")),
        (recurrent_writer(), "a recurrent network reads elements in order, and a node has none: set model.kind="),
        *(
            (make(attention), BY_ORDER)
            for attention in (LocationConfig(), LinformerConfig(), LocalPredictiveConfig(), WindowConfig())
            for make in (
                lambda attention: writer(cross_attention=attention),
                lambda attention: recurrent_writer(attention, encoder="none"),
            )
        ),
    ],
)
def test_a_writer_that_goes_by_the_order_of_nodes_or_ignores_edges_is_refused(config, told, numbers):
    told = told or ("has no scores that distances or features of edges" if numbers else NO_ORDER)
    with pytest.raises(ValueError, match=re.escape(told)) as refusal:
        written(config, [molecule(6, seed=1, numbers=numbers)])
    assert "\n" not in str(refusal.value)
