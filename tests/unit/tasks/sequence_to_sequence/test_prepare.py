from types import SimpleNamespace

import pytest
import torch

from regardant.models import EncoderDecoderConfig, SequenceToSequenceConfig
from regardant.tasks.sequence_to_sequence.prepare import (
    LEARNING_RATES,
    MUON_DECAY,
    MUON_FACTOR,
    SMALL_BATCH,
    choose_dropout,
    choose_for_small_model,
    choose_model,
    choose_schedule,
    count_words,
    vocab_size_for,
)
from regardant.training.config import NextTokenTraining, TrainingConfig
from regardant.training.optimizers import MuonConfig

AUTO, TINY = EncoderDecoderConfig(preset="auto"), EncoderDecoderConfig(preset="tiny")


@pytest.mark.parametrize(
    ("num_words", "expected"), [(0, 300), (1000, 300), (10_000, 800), (700_000, 6600), (10**9, 32_000)]
)
def test_vocabularies_grow_with_the_root_of_the_corpus(num_words, expected):
    assert vocab_size_for(num_words) == expected


def test_words_stand_between_white_space():
    assert count_words(["the cat", " sat  on\tit ", ""]) == 5


@pytest.mark.skipif(torch.cuda.is_available(), reason="an accelerator feeds larger models")
@pytest.mark.parametrize(("num_pairs", "d_model"), [(100, 128), (199_000, 128), (200_000, 256), (2_000_000, 256)])
def test_larger_corpora_get_larger_models(num_pairs, d_model):
    chosen = choose_model(AUTO, num_pairs)
    assert (chosen.d_model, chosen.norm) == (d_model, "pre")
    assert (chosen.positions.kind, chosen.feed_forward.kind) == ("rotary", "gated")


@pytest.mark.parametrize(("passes", "dropout"), [(0.3, 0.1), (8, 0.1), (8.1, 0.2), (40, 0.2), (40.1, 0.3), (1e6, 0.3)])
def test_the_fewer_passes_the_less_dropout(passes, dropout):
    assert choose_dropout(passes) == dropout


def test_what_is_given_goes_before_what_is_chosen():
    config = EncoderDecoderConfig(preset="auto", dropout=0.05, norm="post", encoder={"num_layers": 2})
    chosen = choose_model(config, 100)
    assert (chosen.dropout, chosen.norm, chosen.encoder.num_layers) == (0.05, "post", 2)
    assert (chosen.preset, chosen.d_model, chosen.decoder.num_layers) == ("tiny", 128, 4)


def test_positions_that_turn_queries_are_chosen_where_all_layers_have_some():
    mixed = EncoderDecoderConfig(preset="auto", encoder={"self_attention": {"kind": "convolution"}})
    assert choose_model(mixed, 100).positions.kind == "sinusoidal"
    given = EncoderDecoderConfig(preset="auto", positions={"kind": "learned"}, feed_forward={"kind": "linear"})
    chosen = choose_model(given, 100)
    assert (chosen.positions.kind, chosen.feed_forward.kind) == ("learned", "linear")


@pytest.mark.skipif(torch.cuda.is_available(), reason="an accelerator feeds larger models")
def test_a_small_corpus_is_trained_on_by_muon_in_small_batches():
    given = NextTokenTraining(max_minutes=1)
    small, large = (choose_for_small_model(given, AUTO, choose_model(AUTO, pairs)) for pairs in (1000, 300_000))
    assert (small.batch_tokens, small.optimizer) == (SMALL_BATCH, MuonConfig(weight_decay=MUON_DECAY))
    assert large is given
    assert choose_for_small_model(given, TINY, choose_model(TINY, 1000)) is given


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"batch_tokens": 4096}, (4096, "muon")),
        ({"optimizer": {"kind": "adamw"}}, (SMALL_BATCH, "adamw")),
        ({"batch_tokens": 4096, "optimizer": {"kind": "adam"}}, (4096, "adam")),
        ({"strategy": "fsdp"}, (SMALL_BATCH, "adamw")),
    ],
)
def test_batches_and_an_optimizer_that_are_given_stay(given, expected):
    training = NextTokenTraining.model_validate({"max_minutes": 1, **given})
    chosen = choose_for_small_model(training, AUTO, choose_model(AUTO, 1000))
    assert (chosen.batch_tokens, chosen.optimizer.kind) == expected


@pytest.mark.parametrize("preset", ["base", None])
def test_a_preset_that_is_given_stays(preset):
    config = EncoderDecoderConfig(preset=preset)
    assert choose_model(config, 100) is config


@pytest.mark.parametrize("name", LEARNING_RATES)
@pytest.mark.parametrize(("optimizer", "factor"), [("adamw", 1), ("adam", 1), ("muon", MUON_FACTOR)])
def test_the_rate_suits_model_and_optimizer_where_the_schedule_is_open(name, optimizer, factor):
    given = TrainingConfig.model_validate({"max_updates": 9, "accumulate": 2, "optimizer": {"kind": optimizer}})
    model = (
        SequenceToSequenceConfig.kinds()[name]()
        if name in SequenceToSequenceConfig.kinds()
        else EncoderDecoderConfig(preset=name)
    )
    training = choose_schedule(given, model, 10_000)
    assert (training.schedule.kind, training.schedule.learning_rate) == ("linear", factor * LEARNING_RATES[name])
    assert training.model_copy(update={"schedule": given.schedule}) == given


@pytest.mark.parametrize(("updates", "expected"), [(2, 1), (200, 50), (4000, 1000), (40_000, 1000)])
def test_a_short_run_warms_up_for_a_quarter_of_itself(updates, expected):
    training = choose_schedule(TrainingConfig(max_minutes=1), EncoderDecoderConfig(preset="tiny"), updates)
    assert training.schedule.warmup_steps == expected


def test_a_schedule_that_is_given_stays(tiny_config):
    config = tiny_config("training.schedule.learning_rate=0.123")
    chosen = choose_schedule(config.training, EncoderDecoderConfig(preset="tiny"), 10_000)
    assert chosen.schedule.learning_rate == 0.123


def test_a_model_that_users_add_keeps_the_schedule_of_the_recipe():
    given = TrainingConfig(max_minutes=1)
    assert choose_schedule(given, SimpleNamespace(kind="own_translator"), 10_000) == given
