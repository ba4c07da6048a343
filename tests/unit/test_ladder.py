"""The recipes `ladder/*`: one story of attention, told on one corpus with one budget by models of one size."""

import pytest

from regardant import config, run
from regardant.tasks.translation.config import TranslationConfig
from tests.models import over_pairs

RUNGS = {name for name in config.recipes() if name.startswith("ladder/")}
VOCAB_SIZE = 6000
SAME = {"seed", "data", "tokenizer", "generation", "evaluation"}
"""What all rungs have in common, beside their budget."""


def loaded(name, *overrides):
    return config.load(TranslationConfig, config.recipe(name), overrides, origin=name)


def num_parameters(name):
    model = over_pairs(loaded(name).model, VOCAB_SIZE)
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_ladder_begins_without_attention_and_ends_without_recurrence():
    told = {"gru-one-to-one", "gru-fixed", "gru-cho", "gru-bahdanau", "gru-luong", "convolutional", "transformer"}
    assert {f"ladder/{name}" for name in told} < RUNGS


@pytest.mark.parametrize("name", sorted(RUNGS))
def test_rungs_differ_in_their_model_and_its_learning_rate_alone(name):
    rung, measure = loaded(name), loaded("ladder/transformer")
    assert rung.model_dump(include=SAME) == measure.model_dump(include=SAME)
    assert rung.training.max_minutes == 10
    same = measure.training.schedule.model_copy(update={"learning_rate": rung.training.schedule.learning_rate})
    assert rung.training == measure.training.model_copy(update={"schedule": same})


def test_rungs_have_as_many_parameters_within_five_per_cent():
    counts = {name: num_parameters(name) for name in sorted(RUNGS)}
    assert max(counts.values()) <= 1.05 * min(counts.values()), counts


@pytest.mark.parametrize("name", sorted(RUNGS))
def test_a_rung_s_header_says_what_it_is_where_it_is_from_and_the_command(name):
    header = config.header(name)
    assert "https://arxiv.org/abs/" in header
    assert f"regardant train {name} && regardant evaluate runs/{name}" in header


@pytest.mark.slow  # their models are of full size
@pytest.mark.parametrize("name", sorted(RUNGS))
def test_a_rung_trains_and_translates(name, corpus, tmp_path):
    small = loaded(
        name,
        f"data={{kind: pairs, root: {corpus}, source: a.en, target: a.fr, validation_size: 4, test_size: 4}}",
        "tokenizer={kind: word}",
        "training.max_minutes=null",
        "training.max_updates=2",
        "training.batch_tokens=100",
        "training.precision=float32",
        "training.attention_kernel=sdpa",
        "training.validate_every=2",
    )
    outcome = run.train(small, tmp_path / "rung", lambda _: None)
    assert outcome.finished and outcome.cursor.update == 2
    (translation,) = run.load(tmp_path / "rung").translate(["the cat sat ."], beam_size=2)
    assert translation.tokens
