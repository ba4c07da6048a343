"""Every position scheme of the package, and two that users add, at the place where it says it acts."""

from typing import get_args

import pytest
import torch
from torch.testing import assert_close

from regardant.config.schema import alternatives, variants
from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.models.config import EncoderDecoderConfig
from regardant.models.encoder_decoder import EncoderDecoder
from regardant.positions import AnyPositions, Place

from .plugins import RelativeBucketsConfig, RotaryConfig

D_MODEL, NUM_HEADS, MAX_LENGTH = 16, 4, 24
SCHEMES = variants([*alternatives(AnyPositions), RelativeBucketsConfig, RotaryConfig])

every_scheme = pytest.mark.parametrize("config", SCHEMES.values(), ids=SCHEMES)


def build(config):
    torch.manual_seed(0)
    return config().build(d_model=D_MODEL, num_heads=NUM_HEADS, max_length=MAX_LENGTH)


def acting_on(place):
    names = [name for name, config in SCHEMES.items() if build(config).acts_on == place]
    return pytest.mark.parametrize("config", [SCHEMES[name] for name in names], ids=names)


def model_with(config):
    torch.manual_seed(0)
    sizes = EncoderDecoderConfig(preset=None, d_model=D_MODEL, num_heads=NUM_HEADS, d_ff=32, max_length=MAX_LENGTH)
    return EncoderDecoder(sizes.model_copy(update={"positions": config()}), 12, 12).eval()


def test_the_schemes_of_the_package_are_under_contract():
    assert {"sinusoidal", "learned"} <= set(SCHEMES)
    assert {build(config).acts_on for config in SCHEMES.values()} == set(get_args(Place))


@acting_on("input")
def test_a_vector_depends_on_its_own_position_alone(config):
    scheme, all_of_them = build(config), torch.arange(MAX_LENGTH)
    table = scheme.embed(all_of_them)
    assert table.shape == (MAX_LENGTH, D_MODEL)
    assert_close(scheme.embed(all_of_them[[5, 0, 5]]), table[[5, 0, 5]])
    assert torch.cdist(table, table).fill_diagonal_(torch.inf).min() > 0.01


@acting_on("query_key")
def test_a_turned_vector_depends_on_its_own_position_alone(config):
    scheme, all_of_them = build(config), torch.arange(MAX_LENGTH)
    x = torch.randn(2, NUM_HEADS, MAX_LENGTH, D_MODEL // NUM_HEADS)
    turned = scheme.turn(x, all_of_them)
    assert turned.shape == x.shape
    some = torch.tensor([7, 0, 3])
    assert_close(scheme.turn(x[:, :, some], some), turned[:, :, some])
    assert (turned[:, :, 1:] - x[:, :, 1:]).abs().amax(-1).min() > 0.01
    assert scheme.turn(x.bfloat16(), all_of_them).dtype == torch.bfloat16


@acting_on("scores")
def test_a_block_of_the_bias_is_a_block_of_the_whole(config):
    scheme, all_of_them = build(config), torch.arange(MAX_LENGTH)
    whole = scheme.bias(all_of_them, all_of_them)
    assert whole.shape == (NUM_HEADS, MAX_LENGTH, MAX_LENGTH)
    queries, keys = torch.tensor([7, 0]), torch.tensor([3, 9, 1])
    assert_close(scheme.bias(queries, keys), whole[:, queries][:, :, keys])


@every_scheme
def test_a_model_tells_where_tokens_stand(config):
    model = model_with(config)
    source, order = torch.tensor([[5, 6, 7, 8, 9, EOS]]), torch.tensor([4, 2, 0, 1, 3, 5])
    with torch.no_grad():
        shuffled = model.encode(source[:, order]).values
        assert (shuffled - model.encode(source).values[:, order]).abs().max() > 0.01


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
