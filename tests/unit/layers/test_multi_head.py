import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant.attention import ScaledDotProduct, ScaledDotProductConfig, View
from regardant.attention.lsh import LSHConfig
from regardant.layers.dropout import share_key
from regardant.layers.multi_head import CrossAttention, HeadShape, SelfAttention
from regardant.positions import Positions, SinusoidalConfig
from regardant.positions.none import NoPositions

BATCH, LENGTH, D_MODEL, NUM_HEADS = 2, 5, 12, 6
SIZE = D_MODEL // NUM_HEADS
CAUSAL = View(causal=True)


class Shift(Positions):
    """Adds where a query or key stands to its first number, so that a wrong position is seen."""

    acts_on = "query_key"

    def turn(self, x, positions):
        return x + positions[:, None] * torch.eye(x.shape[-1])[0]


class Shared(ScaledDotProduct):
    shares_query_and_key = True


class SharedConfig(ScaledDotProductConfig):
    def build(self, *, num_heads, head_size):
        return Shared(head_size)


def shape(num_key_heads=NUM_HEADS):
    return HeadShape(D_MODEL, NUM_HEADS, num_key_heads, key_size=SIZE, value_size=SIZE)


def self_attention(num_key_heads=NUM_HEADS, positions=None, config=None):
    torch.manual_seed(0)
    positions = positions or SinusoidalConfig().build(
        d_model=D_MODEL, num_heads=NUM_HEADS, head_size=SIZE, max_length=LENGTH, causal=False
    )
    config = config or ScaledDotProductConfig()
    return SelfAttention(shape(num_key_heads), config, positions, causal=True)


def vectors(length=LENGTH):
    return torch.randn(BATCH, length, D_MODEL, generator=torch.Generator().manual_seed(length))


def seen_by(layer):
    seen = []
    layer.mechanism.register_forward_hook(lambda module, inputs, answer: seen.append(inputs))
    return seen


def by_hand(layer, x, causal):
    """Head by head, row by row."""
    size = D_MODEL // NUM_HEADS
    key_heads = layer.shape.num_key_heads
    q, k, v = layer.query_key_value(x).split([D_MODEL, key_heads * size, key_heads * size], -1)
    heads = []
    for h in range(NUM_HEADS):
        mine, shared = slice(h * size, (h + 1) * size), h * key_heads // NUM_HEADS
        of_key = slice(shared * size, (shared + 1) * size)
        scores = q[..., mine] @ k[..., of_key].mT / size**0.5
        if causal:
            scores = scores.masked_fill(torch.ones(LENGTH, LENGTH).triu(1).bool(), -torch.inf)
        heads.append(scores.softmax(-1) @ v[..., of_key])
    return layer.output(torch.cat(heads, -1))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("num_key_heads", [1, 2, 3, 6])
def test_self_attention_equals_its_heads_one_by_one(num_key_heads, causal):
    layer, x = self_attention(num_key_heads), vectors()
    assert_close(layer(x, View(causal=causal)), by_hand(layer, x, causal))


@pytest.mark.parametrize("num_key_heads", [1, 2, 6])
def test_the_mechanism_is_given_queries_keys_values_and_the_view(num_key_heads):
    layer = self_attention(num_key_heads)
    seen = seen_by(layer)
    layer(vectors(), CAUSAL)
    ((q, k, v, view),) = seen
    assert q.shape == (BATCH, NUM_HEADS, LENGTH, 2) and k.shape == v.shape == (BATCH, num_key_heads, LENGTH, 2)
    assert view is CAUSAL


def test_the_weights_of_what_the_mechanism_was_given_are_those_that_ran():
    layer, x = self_attention(), vectors()
    seen = seen_by(layer)
    mixed = []
    layer.output.register_forward_pre_hook(lambda module, inputs: mixed.append(inputs[0]))
    layer(x, CAUSAL)
    q, k, _, view = seen[0]
    values = layer.query_key_value(x)[..., 2 * D_MODEL :].unflatten(-1, (NUM_HEADS, -1)).transpose(1, 2)
    weights = layer.mechanism.weights(q, k, view)
    assert_close((weights @ values).transpose(1, 2).flatten(2), mixed[0])


@pytest.mark.parametrize("portions", [[1] * LENGTH, [2, 3]])
@pytest.mark.parametrize("num_key_heads", [2, 6])
@pytest.mark.parametrize("positions", [None, Shift()], ids=["input", "query_key"])
def test_step_by_step_equals_one_pass(portions, num_key_heads, positions):
    layer, x = self_attention(num_key_heads, positions), vectors()
    cache, answers = layer.start(LENGTH), []
    with torch.no_grad():
        for newest in x.split(portions, 1):
            answers.append(layer(newest, View(causal=True), cache))
        assert_close(torch.cat(answers, 1), layer(x, View(causal=True)))
    assert cache.length == LENGTH


def test_a_reordered_state_goes_on_with_other_rows():
    layer, x = self_attention(positions=Shift()), vectors()
    rows = torch.tensor([1, 1, 0])
    with torch.no_grad():
        cache = layer.start(LENGTH)
        layer(x[:, :4], View(causal=True), cache)
        cache.reorder(rows)
        answer = layer(x[rows, 4:], View(causal=True), cache)
        assert_close(answer, layer(x[rows], View(causal=True))[:, 4:])


def test_positions_on_queries_and_keys_come_from_the_view():
    layer, x = self_attention(positions=Shift()), vectors()
    seen = seen_by(layer)
    layer(x, View(query_positions=torch.tensor([3, 1, 4, 0, 2]), key_positions=torch.tensor([3, 1, 4, 0, 2])))
    layer(x, View())
    (q, k, _, _), (plain_q, plain_k, _, _) = seen
    moved = torch.tensor([3.0, 0, 2, -3, -2])
    assert_close((q - plain_q)[..., 0], moved.expand(BATCH, NUM_HEADS, -1))
    assert_close((k - plain_k)[..., 0], moved.expand(BATCH, NUM_HEADS, -1))


def test_a_mechanism_may_share_the_projection_of_queries_and_keys():
    layer = self_attention(config=SharedConfig())
    seen = seen_by(layer)
    assert layer(vectors(), CAUSAL).shape == (BATCH, LENGTH, D_MODEL)
    ((q, k, _, _),) = seen
    assert torch.equal(q, k)
    assert layer.query_key_value.out_features == 2 * D_MODEL


@pytest.mark.parametrize("num_key_heads", [2, 6])
def test_cross_attention_equals_its_heads_one_by_one(num_key_heads):
    torch.manual_seed(0)
    layer = CrossAttention(shape(num_key_heads), ScaledDotProductConfig())
    x, memory = vectors(3), vectors(7)
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    answer = layer(x, layer.project(memory), View(keys=real))
    q, (k, v) = layer.query(x), layer.key_value(memory).chunk(2, -1)
    heads = []
    for h in range(NUM_HEADS):
        of_key = slice(h * num_key_heads // NUM_HEADS * 2, h * num_key_heads // NUM_HEADS * 2 + 2)
        scores = q[..., 2 * h : 2 * h + 2] @ k[..., of_key].mT / 2**0.5
        weights = scores.masked_fill(~real[:, None], -torch.inf).softmax(-1)
        heads.append(weights @ v[..., of_key])
    assert_close(answer, layer.output(torch.cat(heads, -1)))


def test_cross_attention_gives_its_mechanism_queries_memory_and_view():
    layer = CrossAttention(shape(2), ScaledDotProductConfig())
    seen = seen_by(layer)
    memory, view = layer.project(vectors(7)), View()
    layer(vectors(3), memory, view)
    ((q, k, v, shown),) = seen
    assert q.shape == (BATCH, NUM_HEADS, 3, 2) and k is memory.keys and v is memory.values and shown is view


def test_a_memory_kept_for_some_sentences_answers_as_before():
    layer = CrossAttention(shape(), ScaledDotProductConfig())
    with torch.inference_mode():
        x, memory = vectors(3), layer.project(vectors(7))
        before = layer(x, memory, View())
        assert_close(layer(x[1:], memory.keep(torch.tensor([1])), View()), before[1:])


def test_what_compares_a_sequence_with_itself_asks_no_other():
    with pytest.raises(ValueError, match=r"^lsh compares a sequence with itself: it cannot be a cross_attention$"):
        CrossAttention(shape(), LSHConfig())


@pytest.mark.parametrize("causal", [True, False])
def test_dropout_zeroes_weights_in_training_alone(causal):
    torch.manual_seed(0)
    config, size = ScaledDotProductConfig(), HeadShape(D_MODEL, NUM_HEADS, NUM_HEADS, SIZE, SIZE, dropout=0.5)
    layer, x, view = SelfAttention(size, config, NoPositions(), causal=causal), vectors(), View(causal=causal)
    layer.output = nn.Identity()
    layer.query_key_value.weight.data[2 * D_MODEL :] = 0
    layer.query_key_value.bias.data[2 * D_MODEL :] = 1  # so that each head answers with the sum of its weights
    assert_close(layer.eval()(x, view), torch.ones_like(x))
    layer.train()
    sums = torch.stack([layer(x, view) for _ in range(500)])
    assert sums.var(0).min() > 0.01
    assert (sums.mean(0) - 1).abs().max() < 0.2  # a single weight is 0 or 2: four deviations of its mean


def test_dropout_of_weights_is_repeated_under_its_key():
    layer = SelfAttention(
        HeadShape(D_MODEL, NUM_HEADS, NUM_HEADS, SIZE, SIZE, dropout=0.5),
        ScaledDotProductConfig(),
        NoPositions(),
        causal=True,
    )
    key = share_key(layer)
    first = layer(vectors(), CAUSAL)
    assert torch.equal(layer(vectors(), CAUSAL), first)
    key.update += 1
    assert not torch.equal(layer(vectors(), CAUSAL), first)
