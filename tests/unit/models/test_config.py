"""A Transformer that cannot be is refused in one line: by its configuration, or when it is built."""

import re

import pytest
import torch

from regardant import config
from regardant.attention import ScaledDotProductConfig
from regardant.attention.linformer import LinformerConfig
from regardant.attention.location import LocationConfig
from regardant.errors import ConfigError
from regardant.layers.dense import DenseMixerConfig
from regardant.models import EncoderDecoderConfig
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.encoder_only import EncoderOnlyConfig
from regardant.models.heads import SequenceClassConfig, next_token
from regardant.models.recurrent import RecurrentConfig
from regardant.models.recurrent.decoders import LuongConfig
from regardant.models.representations import patches, tokens
from regardant.positions.learned import LearnedConfig
from regardant.positions.one_hot import OneHotConfig
from regardant.positions.sinusoidal import SinusoidalConfig
from regardant.tasks import load_recipe
from tests.models import over_pairs, over_text

SIZES = {"preset": None, "d_model": 16, "num_heads": 4, "d_ff": 32, "max_length": 12}
ONE_LAYER = {"num_layers": 1}

WRONG = {
    "heads that do not divide d_model": (
        {"num_heads": 3},
        "d_model (16) must be a multiple of num_heads (3), or key_size and value_size be given",
    ),
    "heads that do not divide d_model, with the size of one of them": (
        {"num_heads": 3, "key_size": 4},
        "d_model (16) must be a multiple of num_heads (3), or key_size and value_size be given",
    ),
    "key heads that do not divide heads": (
        {"num_key_heads": 3},
        "num_heads (4) must be a multiple of num_key_heads (3)",
    ),
    "a query that shares fewer key heads": (
        {"projections": "query_key", "num_key_heads": 2},
        "projections 'query_key' need as many key heads as heads: leave out num_key_heads",
    ),
    "a value that shares a key of another size": (
        {"projections": "key_value", "key_size": 3, "value_size": 5},
        "projections 'key_value' make keys and values the same, but key_size is 3 and value_size 5: make them equal",
    ),
    "tokens that cannot be cut into heads": (
        {"projections": "none", "key_size": 3, "value_size": 3},
        "projections 'none' cut the tokens themselves into heads: leave out key_size and value_size",
    ),
    "reversible layers with a norm in between": (
        {"residual": "reversible", "norm": "post"},
        "reversible residuals normalise the input of a sublayer: set norm=pre",
    ),
    "reversible layers that are all remembered": (
        {"residual": "reversible", "memory": "per_layer"},
        "memory 'per_layer' keeps activations that reversible residuals discard: choose one",
    ),
    "memory of layers that are not there": (
        {"memory": "per_layer", "encoder": {"num_layers": 2}, "decoder": {"num_layers": 3}},
        "memory 'per_layer' pairs layers, but the encoder has 2 and the decoder 3: make them equal",
    ),
    "positions that leave no room": (
        {"positions": {"kind": "one_hot"}, "max_length": 16, "tie_embeddings": "none"},
        "positions of 16 numbers leave none of d_model (16) to the token: raise d_model, or lower max_length or "
        "positions.size",
    ),
    "positions beside a tied vector": (
        {"positions": {"kind": "one_hot"}},
        "positions take 12 of a token's 16 numbers, so that its vector is shorter than the output's: set "
        "tie_embeddings=none",
    ),
    "a size of positions that are added": (
        {"positions": {"kind": "sinusoidal", "size": 4}},
        "positions: size is for concatenated positions: set combine=concatenate or leave it out",
    ),
    "T5's distances within its exact buckets": (
        {"positions": {"kind": "t5", "num_buckets": 32, "max_distance": 16}},
        "positions: max_distance (16) must be more than num_buckets / 2 (16), which have buckets of their own",
    ),
}


@pytest.mark.parametrize(("fields", "line"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_one_line(fields, line):
    with pytest.raises(ConfigError) as raised:
        config.load(EncoderDecoderConfig, SIZES | fields, origin="r.yaml")
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def build(**fields):
    return over_pairs(EncoderDecoderConfig(**SIZES | {"tie_embeddings": "none"} | fields), 20)


def test_heads_may_have_any_size_where_both_are_given():
    model = build(num_heads=3, key_size=4, value_size=5, encoder=ONE_LAYER, decoder=ONE_LAYER)
    assert model.scores(torch.tensor([[5, 6]]), torch.tensor([[1, 5, 6]])).shape == (1, 3, 20)


SHORT = {
    "linformer": lambda: build(encoder={"num_layers": 1, "self_attention": LinformerConfig(max_length=11)}),
    "location": lambda: build(decoder={"num_layers": 1, "self_attention": LocationConfig(max_length=11)}),
    "location that asks": lambda: build(decoder={"num_layers": 1, "cross_attention": LocationConfig(max_length=11)}),
    "location of a recurrent decoder": lambda: over_pairs(
        RecurrentConfig(decoder=LuongConfig(attention=LocationConfig(max_length=11)), max_length=12), 20
    ),
}


@pytest.mark.parametrize("make", SHORT.values(), ids=SHORT)
def test_a_mechanism_that_ends_before_the_model_is_refused(make):
    with pytest.raises(ValueError, match=r"^\w+ ends at 11 keys and model.max_length is 12: raise its max_length or"):
        make()


def test_a_mechanism_that_ends_where_the_model_does_is_not():
    model = build(encoder={"num_layers": 1, "self_attention": LinformerConfig(max_length=12)})
    assert model.encode(torch.full((1, 12), 5)).values.shape[1] == 12


ENDING = {
    "dense": DenseMixerConfig(),
    "linformer": LinformerConfig(max_length=12),
    "location": LocationConfig(max_length=12),
}


def reader(mixer, pooling):
    sizes = {"d_model": 16, "num_heads": 4, "d_ff": 32, "num_layers": 1, "max_length": 12, "dropout": 0.0}
    config = EncoderOnlyConfig(**sizes, self_attention=mixer)
    return config.build(tokens(20), lambda d_model: SequenceClassConfig(pooling=pooling).build(d_model, 3))


@pytest.mark.parametrize("kind", ENDING)
def test_a_class_token_takes_a_place_of_layers_that_end(kind):
    model, without = reader(ENDING[kind], "class_token"), reader(ENDING[kind], "mean")
    assert (model.max_length("input"), without.max_length("input")) == (11, 12)
    for one in (model, without):
        assert one.scores(torch.full((1, one.max_length("input")), 5)).shape == (1, 3)
    shapes, others = ({name: p.shape for name, p in one.encoder.named_parameters()} for one in (model, without))
    assert shapes == others  # weights of runs from before places were counted still fit


@pytest.mark.parametrize("mixer", [ScaledDotProductConfig(), LinformerConfig(max_length=13)], ids=lambda one: one.kind)
def test_a_class_token_takes_no_place_where_there_is_room(mixer):
    model = reader(mixer, "class_token")
    assert model.max_length("input") == 12
    assert model.scores(torch.full((1, 12), 5)).shape == (1, 3)


def test_more_tokens_than_dense_weights_are_refused():
    model = build(encoder={"num_layers": 1, "self_attention": DenseMixerConfig()}, decoder=ONE_LAYER)
    with pytest.raises(ValueError, match=r"^dense weights end at 12 tokens and 13 were given: raise max_length$"):
        model.encode(torch.full((1, 13), 5))


@pytest.mark.parametrize("positions", [LearnedConfig(), OneHotConfig()], ids=lambda config: config.kind)
def test_more_tokens_than_positions_are_refused(positions):
    model = build(positions=positions, encoder=ONE_LAYER, decoder=ONE_LAYER)
    with pytest.raises(ValueError, match=r"^these positions end at token 12 and 13 were given: raise model.max_length"):
        model.encode(torch.full((1, 13), 5))


def test_more_tokens_than_positions_are_no_trouble_to_those_that_go_on():
    model = build(positions=SinusoidalConfig(), encoder=ONE_LAYER, decoder=ONE_LAYER)
    assert model.encode(torch.full((1, 13), 5)).values.shape[1] == 13


def test_a_grid_names_the_setting_that_makes_its_vectors():
    grid = {"kind": "two_dimensional", "combine": "concatenate", "size": 6}
    with pytest.raises(ValueError, match=r"^positions on a grid need a multiple of 4 numbers, not 6: change .*size$"):
        build(positions=grid)
    with pytest.raises(
        ValueError, match=r"^positions on a grid need a multiple of 4 numbers, not 18: change d_model \("
    ):
        build(positions={"kind": "two_dimensional"}, d_model=18, num_heads=3)


UNTIED = {
    "two vocabularies, source": (
        lambda: over_pairs(EncoderDecoderConfig(), 20, 21),
        "the input has 20 words of 128 numbers and the output 21 of 128: set tie_embeddings=target",
    ),
    "two vocabularies, text": (
        lambda: DecoderOnlyConfig().build(tokens(20), next_token(21)),
        "the input has 20 words of 128 numbers and the output 21 of 128: set tie_embeddings=none",
    ),
    "patches": (
        lambda: EncoderOnlyConfig(tie_embeddings=True).build(patches(2, 1), next_token(21)),
        "a patch has no embedding matrix that the output could share: set tie_embeddings=false",
    ),
    "classes": (
        lambda: EncoderOnlyConfig(tie_embeddings=True).build(
            tokens(20), lambda d_model: SequenceClassConfig().build(d_model, 3)
        ),
        "SequenceClass scores no vocabulary, so that it has no matrix to tie: set tie_embeddings=false",
    ),
}


@pytest.mark.parametrize(("build", "line"), UNTIED.values(), ids=UNTIED)
def test_a_matrix_that_cannot_be_tied_is_refused_with_the_setting_to_choose(build, line):
    with pytest.raises(ValueError, match=f"{re.escape(line)}$"):
        build()


def test_exact_attention_is_what_a_recipe_gets_that_names_none():
    assert EncoderDecoderConfig().encoder.self_attention == ScaledDotProductConfig()


def test_an_override_of_the_preset_goes_before_the_sizes_of_a_recipe():
    demo = config.recipe("demo")
    base = load_recipe(demo, ["model.preset=base"]).model
    assert (base.d_model, base.d_ff, base.num_heads, base.dropout) == (512, 2048, 8, 0.1)
    assert (base.encoder.num_layers, base.decoder.num_layers) == (6, 6)
    assert base.max_length == demo["model"]["max_length"]  # no preset has one
    narrower = load_recipe(demo, ["model.d_model=64", "model.preset=base"]).model
    assert (narrower.d_model, narrower.d_ff) == (64, 2048)


@pytest.mark.parametrize("given", ["{}", "[]", "huge", "3"])
def test_a_preset_that_there_is_not_is_one_line(given):
    with pytest.raises(
        ConfigError, match=r"^demo: model\.preset: given .*; allowed: tiny, small, base, big"
    ) as refusal:
        load_recipe(config.recipe("demo"), [f"model.preset={given}"], origin="demo")
    assert "\n" not in str(refusal.value)


PARAMETERS = {
    "gpt2": (1024, 124_439_808),
    "gpt2-medium": (1024, 354_823_168),
    "gpt2-large": (1024, 774_030_080),
    "gpt2-xl": (1024, 1_557_611_200),
    "gpt3": (2048, 174_604_259_328),
}
"""Context and parameters over a vocabulary of 50,257: those of the released weights of GPT-2; for GPT-3 the count of
its table 2.1 with learned positions, tied output, biases and a final norm."""


@pytest.mark.parametrize("preset", PARAMETERS)
def test_published_language_models_have_exactly_their_parameters(preset):
    given = load_recipe(config.recipe("shakespeare"), [f"model.preset={preset}"]).model
    with torch.device("meta"):
        model = over_text(given, 50_257)
    assert (given.max_length, sum(parameter.numel() for parameter in model.parameters())) == PARAMETERS[preset]


@pytest.mark.parametrize("preset", ["tiny", "small"])
def test_a_preset_replaces_the_sizes_of_a_language_model_s_recipe(preset):
    recipe = config.recipe("shakespeare")
    given = load_recipe(recipe, [f"model.preset={preset}"]).model
    assert given == DecoderOnlyConfig(preset=preset)
    narrower = load_recipe(recipe, ["model.d_model=96", "model.num_heads=6", f"model.preset={preset}"]).model
    assert (narrower.d_model, narrower.num_heads, narrower.d_ff) == (96, 6, given.d_ff)
    assert load_recipe(recipe).model.preset is None


def test_a_preset_of_a_model_that_has_none_is_one_line():
    with pytest.raises(
        ConfigError, match=r"^r: model\.preset: unknown key \(allowed: kind, max_length, cell, "
    ) as refusal:
        load_recipe(config.recipe("shakespeare"), ["model.kind=recurrent", "model.preset=tiny"], origin="r")
    assert "\n" not in str(refusal.value)
