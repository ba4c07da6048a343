"""Every position scheme of the package, and one that users add, at the place where it says it acts."""

from typing import get_args

import pytest
import torch
from torch.testing import assert_close

from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.positions import Place, PositionsConfig
from regardant.positions.base import InputConfig
from regardant.positions.scalar import Scalar
from tests.models import loss_of_pairs, over_pairs

from . import plugins  # noqa: F401  which adds a scheme

D_MODEL, NUM_HEADS, HEAD_SIZE, MAX_LENGTH = 32, 4, 8, 24
KINDS = PositionsConfig.kinds()
SCHEMES = {kind: config() for kind, config in KINDS.items()} | {
    f"{kind}/beside": config(combine="concatenate") for kind, config in KINDS.items() if issubclass(config, InputConfig)
}

every_scheme = pytest.mark.parametrize("config", SCHEMES.values(), ids=SCHEMES)


def build(config, causal=False):
    torch.manual_seed(0)
    shape = {"d_model": D_MODEL, "num_heads": NUM_HEADS, "head_size": HEAD_SIZE, "max_length": MAX_LENGTH}
    return config.build(**shape, causal=causal)


def those(condition):
    names = [name for name, config in SCHEMES.items() if condition(build(config))]
    return pytest.mark.parametrize("config", [SCHEMES[name] for name in names], ids=names)


def acting_on(place):
    return those(lambda scheme: scheme.acts_on == place)


def bias_between(scheme, q, queries, keys):
    """[B, H, Q, K] for some of the queries q, which stand at 0, 1, ..."""
    if scheme.depends_on_query:
        return scheme.bias_of(q, 0)(queries, keys)
    return scheme.bias(queries, keys).expand(len(q), -1, -1, -1)


def model_with(config, **fields):
    torch.manual_seed(0)
    sizes = {"d_model": D_MODEL, "num_heads": NUM_HEADS, "d_ff": 32, "max_length": MAX_LENGTH} | fields
    whole = EncoderDecoderConfig(preset=None, tie_embeddings="none", positions=config, **sizes)
    return over_pairs(whole, 12).eval()


def moved_by_order(model):
    """How much a shuffled source changes what its tokens come to."""
    source, order = torch.tensor([[5, 6, 7, 8, 9, EOS]]), torch.tensor([4, 2, 0, 1, 3, 5])
    with torch.no_grad():
        return (model.encode(source[:, order]).values - model.encode(source).values[:, order]).abs().max()


def test_the_schemes_of_the_package_are_under_contract():
    assert {"sinusoidal", "learned", "rotary", "alibi", "t5", "shaw", "none", "ramp"} <= set(SCHEMES)
    assert {build(config).acts_on for config in SCHEMES.values()} == set(get_args(Place))


@acting_on("input")
def test_a_vector_depends_on_its_own_position_alone(config):
    scheme, all_of_them = build(config), torch.arange(MAX_LENGTH)
    table = scheme.embed(all_of_them)
    assert table.shape == (MAX_LENGTH, scheme.concatenated or D_MODEL)
    assert scheme.concatenated == config.width(D_MODEL, MAX_LENGTH)
    assert_close(scheme.embed(all_of_them[[5, 0, 5]]), table[[5, 0, 5]])
    assert torch.cdist(table, table).fill_diagonal_(torch.inf).min() > 0.01


@acting_on("query_key")
def test_a_turned_vector_depends_on_its_own_position_alone(config):
    scheme, all_of_them = build(config), torch.arange(MAX_LENGTH)
    x = torch.randn(2, NUM_HEADS, MAX_LENGTH, HEAD_SIZE)
    turned = scheme.turn(x, all_of_them)
    assert turned.shape == x.shape
    some = torch.tensor([7, 0, 3])
    assert_close(scheme.turn(x[:, :, some], some), turned[:, :, some])
    assert (turned[:, :, 1:] - x[:, :, 1:]).abs().amax(-1).min() > 0.01
    assert scheme.turn(x.bfloat16(), all_of_them).dtype == torch.bfloat16


@pytest.mark.parametrize("causal", [False, True])
@acting_on("scores")
def test_a_block_of_the_bias_is_a_block_of_the_whole(config, causal):
    scheme, all_of_them = build(config, causal), torch.arange(MAX_LENGTH)
    q = torch.randn(2, NUM_HEADS, MAX_LENGTH, HEAD_SIZE)
    whole = bias_between(scheme, q, all_of_them, all_of_them)
    assert whole.shape == (2, NUM_HEADS, MAX_LENGTH, MAX_LENGTH)
    queries, keys = torch.tensor([7, 0]), torch.tensor([3, 9, 1])
    assert_close(bias_between(scheme, q, queries, keys), whole[:, :, queries][..., keys])


@those(lambda scheme: scheme.acts_on != "nowhere")
def test_a_model_tells_where_tokens_stand(config):
    assert moved_by_order(model_with(config)) > 0.01


@acting_on("nowhere")
def test_a_model_without_positions_reads_a_bag_of_tokens(config):
    assert moved_by_order(model_with(config)) < 1e-5


@every_scheme
def test_a_model_decodes_step_by_step_as_in_one_pass(config):
    model = model_with(config)
    source = torch.tensor([[5, 6, 7, 8, EOS], [9, 5, EOS, PAD, PAD]])
    target = torch.cat([torch.full((2, 1), SOS), torch.randint(5, 12, (2, MAX_LENGTH - 1))], 1)
    with torch.no_grad():
        state = model.start(model.encode(source), 1, MAX_LENGTH)
        stepped = torch.cat([model.step(tokens, state) for tokens in target.split(1, 1)], 1)
        assert_close(stepped, model.scores(source, target), rtol=1e-4, atol=1e-5)


@every_scheme
def test_padding_moves_nobody(config):
    model = model_with(config)
    source = torch.tensor([[9, 5, EOS, PAD, PAD]])
    with torch.no_grad():
        assert_close(model.encode(source).values[:, :3], model.encode(source[:, :3]).values)


def gradients_of(model):
    """Of sequences as long as the model takes."""
    source = torch.randint(5, 12, (2, MAX_LENGTH), generator=torch.Generator().manual_seed(1))
    model.zero_grad()
    loss_of_pairs(model, source, torch.cat([torch.full((2, 1), SOS), source], 1)).total.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


@every_scheme
def test_every_parameter_gets_a_gradient(config):
    gradients = gradients_of(model_with(config))
    assert not [name for name, gradient in gradients.items() if gradient is None or not gradient.any()]


def numbers_read(scheme, causal):
    """Where a number of the scheme's one parameter says something of a whole sequence."""
    at = torch.arange(MAX_LENGTH)
    if scheme.acts_on == "input":
        said = scheme.embed(at)
    else:
        said = bias_between(scheme, torch.ones(1, NUM_HEADS, MAX_LENGTH, HEAD_SIZE), at, at)
        said = said.tril() if causal else said
    (gradient,) = torch.autograd.grad(said.sum(), list(scheme.parameters()))
    return gradient != 0


@those(lambda scheme: list(scheme.parameters()))
def test_every_number_of_a_scheme_that_is_read_gets_a_gradient_and_no_other(config):
    model = model_with(config)
    gradients_of(model)
    for scheme, causal in ((model.source.positions, False), (model.target.positions, True)):
        (parameter,) = scheme.parameters()
        assert torch.equal(parameter.grad != 0, numbers_read(scheme, causal))


@those(lambda scheme: scheme.longest is None and not isinstance(scheme, Scalar))
def test_a_model_trained_on_short_sequences_reads_long_ones(config):
    """As a model would that was built for them: `scalar` alone counts in shares of its length."""
    short, long = model_with(config), model_with(config, max_length=10 * MAX_LENGTH)
    long.load_state_dict(short.state_dict())
    source = torch.randint(5, 12, (2, 3 * MAX_LENGTH), generator=torch.Generator().manual_seed(2))
    target = torch.cat([torch.full((2, 1), SOS), source[:, 1:]], 1)
    with torch.no_grad():
        assert_close(short.scores(source, target), long.scores(source, target))
        state = short.start(short.encode(source), 1, target.shape[1])
        stepped = torch.cat([short.step(tokens, state) for tokens in target.split(1, 1)], 1)
        assert_close(stepped, long.scores(source, target), rtol=1e-4, atol=1e-5)
