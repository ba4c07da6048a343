"""The parts of the measurements that are quick: what they compute, what they name, and whether they can fail."""

import pytest

from benchmarks.attention.__main__ import row, slope
from benchmarks.attention.cost import cases
from benchmarks.experiments import data_size, equal_heads, gradient_by_distance, toy
from benchmarks.experiments.__main__ import EXPERIMENTS
from benchmarks.recipes import Asked
from regardant.inspection.places import attention_places
from regardant.layers.convolution import ConvolutionMixer


def test_gradients_fade_in_a_recurrence_and_are_no_rounding_in_a_transformer(monkeypatch):
    monkeypatch.setattr(gradient_by_distance, "SEEDS", 1)
    curves = {name: values["median"] for name, values in gradient_by_distance.measure()["series"].items()}
    assert all(curve[0] == 1 for curve in curves.values())
    assert curves["rnn"][-1] < 1e-6 < 0.01 < curves["transformer"][-1]


def test_a_gradient_that_is_rounding_is_refused(monkeypatch):
    monkeypatch.setattr(gradient_by_distance, "LEAST", 1e9)
    with pytest.raises(ArithmeticError, match="which is rounding"):
        gradient_by_distance.measure()


def test_heads_that_begin_alike_in_all_stay_alike_and_others_do_not(monkeypatch):
    monkeypatch.setattr(equal_heads, "STEPS", 40)
    monkeypatch.setattr(equal_heads, "SEEDS", 1)
    found = {name: values["median"] for name, values in equal_heads.measure()["series"].items()}
    assert max(found["equal projections and outputs"]) < 1e-4
    assert found["equal projections"][0] < 1e-4 < 0.01 < found["equal projections"][-1]
    assert min(found["random"]) > 0.1


def test_the_toy_is_learned():
    curve = toy.train(toy.build(0, num_layers=1), steps=200, rate=3e-3)
    assert curve[0] > 0.9 * toy.CHANCE and curve[-1] < 0.7 * toy.CHANCE


def test_models_of_unequal_need_for_data_are_of_equal_size():
    sizes = [sum(p.numel() for p in build(0).parameters()) for build in data_size.MODELS.values()]
    assert len(sizes) == 3 and max(sizes) < 1.1 * min(sizes)


def test_the_convolutional_model_has_convolutions_in_the_place_of_self_attention():
    model = data_size.MODELS["convolutions with attention"](0)
    assert list(attention_places(model)) == ["decoder.cross_attention"]
    assert sum(isinstance(module, ConvolutionMixer) for module in model.modules()) == 4


def test_losses_by_amount_of_data_are_drawn(monkeypatch):
    for name, few in (("SIZES", [10, 30]), ("STEPS", 20), ("SEEDS", 1), ("UNSEEN", 10)):
        monkeypatch.setattr(data_size, name, few)
    measure, chart = EXPERIMENTS["data_size"]
    found = measure()
    assert all(len(losses["median"]) == 2 and min(losses["median"]) > 0 for losses in found["series"].values())
    drawn = chart(found)
    assert all(name in drawn for name in data_size.MODELS)


@pytest.mark.parametrize("power", [1, 2])
def test_a_slope_is_the_power(power):
    assert slope({n: 3.0 * n**power for n in (512, 2048, 4096, 16384)}) == pytest.approx(power)


@pytest.mark.parametrize(
    ("text", "asked", "name"),
    [
        ("demo", Asked("demo"), "demo"),
        ("multi30k-en-de:2", Asked("multi30k-en-de", seed=2), "multi30k-en-de-seed-2"),
        ("ladder/linear@2000", Asked("ladder/linear", updates=2000), "ladder/linear-2000-updates"),
    ],
)
def test_what_to_train_has_a_name_of_its_own(text, asked, name):
    assert Asked.parse(text) == asked and asked.name == name
    train, evaluate = Asked("demo", seed=3, updates=7).commands()
    assert train[:2] == ["train", "demo"] and evaluate[0] == "evaluate"
    assert {"seed=3", "training.max_minutes=null", "training.max_updates=7"} <= set(train)


def test_errors_without_a_mask_are_in_no_causal_row():
    measured = cases()
    off = {"random": dict.fromkeys((one.name for one in measured), 0.5)}
    rows = [row(one, measured, off) for one in measured]
    assert {one["causal"] for one in rows} == {True, False}
    assert all(one["error_on_random"] == (None if one["causal"] else 0.5) for one in rows)
