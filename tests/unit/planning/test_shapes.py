"""Shapes of a recipe's model before training."""

import json

import pytest
import torch

from regardant import config, run
from regardant.errors import ConfigError, DataError
from regardant.inspection.shapes import trace_shapes
from regardant.models import next_token, tokens
from regardant.planning.published import PUBLISHED
from regardant.planning.shapes import ModelShapes, ShapedModule, shapes_of_published, shapes_without_data
from regardant.tasks import load_recipe


def shapes_of(name, *overrides):
    return shapes_without_data(load_recipe(config.recipe(name), overrides, name))


def by_name(found):
    return {module.name: module for module in found.tree.modules()}


SIZES = (
    "model.d_model=8",
    "model.num_heads=2",
    "model.d_ff=10",
    "tokenizer.vocab_size=280",
    "model.feed_forward.kind=linear",
)
"""Numbers that are lengths, or products of lengths, of the passes as well."""


def test_dimensions_are_symbols_where_they_follow_from_the_batch_and_numbers_where_not():
    found = by_name(shapes_of("multi30k-en-de", "data.root=nowhere", *SIZES))
    assert found["source"].output == ["B", "S", 8]
    assert found["encoder.layers.0"].output == ["B", "S", 8]
    assert found["encoder.layers.0.feed_forward.widen"].output == ["B", "S", 10]
    assert found["decoder.layers.1.cross_attention.mechanism"].output == ["B", 2, "T", 4]
    assert found["decoder.layers.1.cross_attention.key_value"].output == ["B", "S", 16]
    assert found["head"].output == ["B", "T", 280]


@pytest.mark.parametrize("name", ["ladder/transformer", "ladder/gru-luong", "ladder/lsh", "ladder/cosine"])
def test_parameters_and_shapes_are_those_of_the_model_in_memory(name):
    recipe = load_recipe(config.recipe(name), ["data.root=nowhere"], name)
    vocabulary = tokens(recipe.tokenizer.vocab_size)
    model = recipe.model.build(vocabulary, vocabulary, next_token(recipe.tokenizer.vocab_size)).eval()
    found = shapes_without_data(recipe)
    assert found.parameters == sum(parameter.numel() for parameter in model.parameters())
    ids = {"source": torch.ones(4, 6, dtype=torch.int64), "target": torch.ones(4, 9, dtype=torch.int64)}
    traced = by_name_of_trace(trace_shapes(model, ids))
    sizes = {"B": 4, "S": 6, "T": 9}
    for name, module in by_name(found).items():
        shape = [dimension_of(size, sizes) for size in module.output]
        assert shape == (traced[name].outputs[0] if traced[name].outputs else []), name
        assert module.parameters == sum(parameter.numel() for parameter in model.get_submodule(name).parameters())


def by_name_of_trace(traced):
    found = {traced.name: traced}
    for part in traced.parts:
        found |= by_name_of_trace(part)
    return found


def dimension_of(size, sizes):
    product = 1
    for factor in str(size).split():
        product *= sizes[factor] if factor in sizes else int(factor)
    return product


def test_packed_states_of_a_batch_have_the_product_of_batch_and_length():
    found = by_name(shapes_of("ladder/gru-fixed", "data.root=nowhere"))
    assert found["encoder.layers.0"].output[0] == "B S"


def test_a_vocabulary_is_given_follows_from_the_letters_or_is_assumed():
    given = shapes_of("shakespeare", "tokenizer.kind=code", "tokenizer.vocab_size=1000")
    assert by_name(given)["head"].output[-1] == 1000
    assert given.notes == ["vocabulary of 1,000, as in tokenizer.vocab_size"]
    assert by_name(shapes_of("shakespeare", "tokenizer.kind=byte"))["head"].output[-1] == 256 + 5
    assumed = shapes_of("shakespeare")
    assert by_name(assumed)["head"].output[-1] == 37_000 and assumed.notes[0].startswith("a vocabulary of 37,000 is as")


def test_a_published_model_has_its_parameters():
    assert shapes_of_published("big").parameters == PUBLISHED["big"].cost().parameters


def test_parts_that_do_not_fit_are_refused_by_name():
    with pytest.raises(ConfigError, match="model: convolution has no queries"):
        shapes_of("demo", "model.positions.kind=rotary", "model.encoder.self_attention.kind=convolution")


def test_sizes_that_are_those_of_the_data_are_read_from_it(tiny_labels_config):
    recipe = tiny_labels_config()
    assert shapes_without_data(recipe) is None
    found = run.shapes(recipe, lambda line: None)
    modules = by_name(found)
    batch, length, size = modules["encoder.layers.1"].output
    assert (batch, size) == ("B", 32) and isinstance(length, int)
    assert modules["head"].output == ["B", 2]
    assert found.symbols == {"B": "batch"} and "of the data" in found.notes[0]


def test_a_preset_that_is_chosen_from_the_data_needs_it(tmp_path):
    overrides = [f"data.root={tmp_path}", "data.source=a.en", "data.target=a.de"]
    with pytest.raises(DataError, match=r"there is no file .*a\.en"):
        run.shapes(load_recipe(config.recipe("translation"), overrides, "translation"), lambda line: None)


def module(name, title, parameters=1, parts=(), kind="Layer"):
    return ShapedModule(name, title, kind, ["B", 8], parameters, list(parts))


def rows_of(*parts):
    return ModelShapes(9, {"B": "batch"}, [], module("", "model", 9, parts)).lines()[2:-1]


def test_layers_that_are_alike_share_a_row_and_others_do_not():
    inner = module("b", "norm", kind="Norm")
    alike = [module(f"layers.{n}", f"layer {n + 1}", parts=[inner]) for n in range(3)]
    other = module("layers.3", "layer 4", parts=[module("b", "norm", kind="Other")])
    titles = [row.split("  ")[0].strip() or row.split()[0] for row in rows_of(*alike, other)]
    assert titles == ["layers 1 to 3", "norm", "layer 4", "norm"]


def test_what_only_passes_on_has_no_row_and_what_only_holds_gives_its_place_to_its_parts():
    held = module("layers", "layers", parts=[module("layers.0", "layer 1")], kind="ModuleList")
    passing = module("written", "written", parameters=0, kind="Identity")
    (row,) = rows_of(held, passing)
    assert row.split() == ["layer", "1", "Layer", "B", "x", "8", "1"]


def test_plan_prints_shapes_and_all_modules_as_json(regardant):
    said = regardant("plan", "demo", "--shapes")
    assert said.code == 0, said.err
    assert any(line.startswith("  layers 1 to 2 ") for line in said.lines)
    assert max(map(len, said.lines)) <= 100
    told = json.loads(regardant("plan", "demo", "--shapes", "--json").out)
    (layer,) = (one for one in told["modules"] if one["name"] == "decoder.layers.1")
    assert (layer["title"], layer["kind"], layer["output"]) == ("layer 2", "DecoderLayer", ["B", "T", 128])
    assert "decoder.layers.1.self_attention" in layer["parts"]
    assert told["symbols"] == {"B": "batch", "S": "length of the source", "T": "length of the target or text"}


def test_shapes_are_refused_beside_devices_in_one_line(regardant):
    said = regardant("plan", "demo", "--shapes", "--devices", "2")
    assert (said.code, said.out) == (2, "")
    assert said.err == "regardant: --shapes lists the modules of one model, on any device: leave out --devices\n"
