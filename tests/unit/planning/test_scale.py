"""The cost of several accelerators, reckoned on paper."""

import json
from dataclasses import replace

import pytest

from regardant import config
from regardant.errors import ConfigError
from regardant.planning import scale
from regardant.planning.scale import DEVICES, Workload, cost
from regardant.tasks import load_recipe

LOAD = Workload(
    parameters=1_000_000,
    units=(400_000, 400_000, 200_000),
    rows=100,
    passes=1,
    flops=1e15,
    operations=1000,
    kept_bytes=8e9,
    targets=2_800,
    updates=3600,
)
H200 = DEVICES["h200"]


def test_replicas_hold_all_state_and_shards_a_part_of_it():
    ddp, fsdp = (cost(LOAD, H200, 4, way) for way in ("ddp", "fsdp"))
    assert ddp.state_bytes == 5 * 4 * 1_000_000
    assert fsdp.state_bytes == ddp.state_bytes / 4
    assert cost(LOAD, H200, 1, "fsdp").state_bytes == ddp.state_bytes


def test_a_rank_sends_two_copies_of_the_gradients_or_weights_twice_and_gradients_once():
    ddp, fsdp = (cost(LOAD, H200, 4, way).sent_bytes for way in ("ddp", "fsdp"))
    assert ddp == pytest.approx(2 * 3 / 4 * 4e6)
    assert fsdp == pytest.approx(3 / 4 * 4 * (3 * 800_000 + 2 * 200_000))
    twice = replace(LOAD, passes=2)
    assert cost(twice, H200, 4, "ddp").sent_bytes == ddp, "gradients wait for the last pass"
    assert cost(twice, H200, 4, "fsdp").sent_bytes == 2 * fsdp
    assert cost(LOAD, H200, 1, "ddp").sent_bytes == 0


def test_time_is_that_of_computing_with_what_sending_adds():
    fast = replace(H200, bandwidth=1e30)
    seconds = 1e15 / 4 / (H200.flops * H200.share)
    found = cost(LOAD, fast, 4, "ddp", rate=2.0)
    assert found.tokens_per_second == pytest.approx(2_800 / seconds)
    assert found.hours == pytest.approx(seconds)
    assert found.price == pytest.approx(found.hours * 4 * 2.0)
    slow = cost(LOAD, replace(fast, link=1e3), 4, "ddp")
    assert slow.hours == pytest.approx(seconds / 3 + 6e6 / 1e3, rel=1e-6), "two thirds of it are hidden"


def test_operations_start_one_after_the_other():
    small = replace(LOAD, flops=1.0)
    found = cost(small, replace(H200, bandwidth=1e30, link=1e30), 8, "ddp")
    assert found.hours == pytest.approx(1000 * H200.launch)


def test_devices_beyond_the_rows_of_a_pass_are_idle():
    fast = replace(H200, bandwidth=1e30, link=1e30)
    few = replace(LOAD, rows=8, passes=2)
    four, many, three = (cost(few, fast, count, "ddp") for count in (4, 64, 3))
    assert many.hours == four.hours and many.memory_bytes == four.memory_bytes
    assert three.hours == 2 * four.hours, "one of three computes two of four rows"


def test_a_model_that_is_chosen_from_a_corpus_is_refused_without_one(regardant):
    given = ("--set", "data.source=a.en", "--set", "data.target=a.de", "--devices", 8)
    said = regardant("plan", "translation", *given)
    assert said.code == 2 and "model.preset=auto depends on one: set model.preset" in said.err
    assert regardant("plan", "translation", *given, "--set", "model.preset=tiny").code == 0


def test_what_does_not_fit_is_told():
    large = replace(LOAD, parameters=10**10, units=(10**9,) * 10)
    assert not cost(large, H200, 8, "ddp").fits
    assert cost(large, H200, 8, "fsdp").fits


def recipe(*given):
    return load_recipe(config.recipe("multi30k-en-de"), ["data.root=here", *given], origin="recipe")


def test_an_update_is_counted_on_the_model_itself():
    small = ("model.preset=tiny", "model.dropout=0", "training.batch_tokens=280", "training.accumulate=2")
    load = scale.workload(recipe(*small, "training.max_updates=7"), vocabulary=100)
    model, (source, target, targets) = scale._model(recipe(*small), 100, scale.LENGTH)
    assert load.parameters == sum(one.numel() for one in model.parameters()) == sum(load.units)
    assert (load.rows, load.passes, load.targets, load.updates) == (20, 2, 20 * 28, 7)
    matrices = sum(one.numel() for one in model.parameters() if one.ndim == 2)
    mechanisms = 3 * len(model.decoder.layers)  # one in each layer of the encoder, two in each of the decoder
    attention = 12 * mechanisms * 128 * 28**2 * 20
    assert load.flops == pytest.approx(6 * matrices * 20 * 28 + attention, rel=0.01)
    kept = scale._kept(model, [block.expand(10, -1) for block in (source, target, targets)])
    assert load.kept_bytes == pytest.approx(kept, rel=0.01)


def test_plan_prints_both_strategies_their_price_and_what_is_assumed(regardant):
    given = ("--set", "data.root=here", "--set", "model.preset=tiny", "--devices", 8, "--rate", 3)
    said = regardant("plan", "multi30k-en-de", *given)
    assert said.code == 0
    assert "ddp on 8" in said.out and "fsdp on 8" in said.out and "price" in said.out
    assert "pairs of 28 tokens a side; a vocabulary of 37,000 entries, that of WMT14 English-German" in said.out
    (found,) = json.loads(regardant("plan", "multi30k-en-de", *given, "--strategy", "fsdp", "--json").out)["strategies"]
    assert (found["strategy"], found["devices"]) == ("fsdp", 8)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--device", "h20"), "--device: given 'h20'; allowed: a100, h100, h200"),
        (("--strategy", "tp"), "--strategy: given 'tp'; allowed: ddp, fsdp"),
    ],
)
def test_what_is_not_known_is_refused_in_a_line(regardant, given, told):
    said = regardant("plan", "multi30k-en-de", "--set", "data.root=here", "--devices", 8, *given)
    assert said.code == 2 and told in said.err and "Traceback" not in said.err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("demo", "--device", "nonsense"), "--device without --devices: give --devices N, or leave out --device"),
        (("demo", "--rate", 3, "--strategy", "ddp"), "--strategy, --rate without --devices: give --devices N, or"),
        (("demo", "--shapes", "--rate", 3), "--rate without --devices: give --devices N, or leave out --rate"),
        (("gpt3", "--devices", 8), "gpt3 is a published model, not a recipe: leave out --devices, or give a recipe"),
    ],
)
def test_options_of_devices_are_refused_where_none_are_counted(regardant, given, told):
    said = regardant("plan", *given)
    assert said.code == 2 and said.err.count("\n") == 1 and told in said.err


def test_a_model_without_a_vocabulary_is_refused():
    with pytest.raises(ConfigError, match=r"^plan --devices needs a vocabulary, .* leave out --devices$"):
        scale.workload(load_recipe(config.recipe("digits-vit"), [], origin="recipe"))


def test_items_that_are_not_texts_are_refused():
    spoken = load_recipe(config.recipe("spoken-sequence"), ["data.root=here"], origin="recipe")
    with pytest.raises(ConfigError, match=r"^plan --devices needs texts, .* leave out --devices$"):
        scale.workload(spoken)


def test_the_rows_of_a_language_model_are_whole_windows():
    text = load_recipe(config.recipe("shakespeare"), ["data.root=here", "model.max_length=48"], origin="recipe")
    assert scale.assumptions(text, H200)[0].startswith("windows of 48 tokens; ")
    _, rows = scale._model(text, 100, scale.LENGTH)
    assert {row.shape[1] for row in rows} == {48}
