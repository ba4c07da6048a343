import shutil

import pytest
import torch

from regardant import config as configuration
from regardant.errors import ConfigError, DataError, RunError
from regardant.tasks import task_named
from regardant.tasks.base import READING_COST, VALIDATION_SHARE
from regardant.tasks.language_modelling.config import LanguageModellingConfig
from regardant.tasks.language_modelling.prepare import prepare_training

CPU = torch.device("cpu")


@pytest.fixture
def prepared(tiny_text_config, tmp_path):
    """What is prepared in a folder of its own for TINY_TEXT with fields set; what was said is kept."""
    said = []

    def prepare(*overrides, folder="run"):
        return prepare_training(tiny_text_config(*overrides), tmp_path / folder, said.append)

    prepare.said = said
    return prepare


def assert_equal_states(model, other):
    torch.testing.assert_close(model.state_dict(), other.state_dict(), rtol=0, atol=0)


# config


def load(*overrides):
    return configuration.load(
        LanguageModellingConfig, {"data": {"source": "a"}, "training": {"max_updates": 1}}, overrides
    )


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("tokenizer.kind=bpe", "tokenizer.kind: given 'bpe'; allowed: character, byte, code"),
        ("tokenizer.joint=false", "tokenizer.joint"),
        ("training.best_by=bleu", r"training\.best_by: given 'bleu'; allowed: loss, perplexity, bits_per_character"),
        ("model.kind=encoder_decoder", "model.kind: .*allowed: decoder_only, recurrent"),
        ("model.num_heads=3", r"d_model \(128\) must be a multiple of num_heads \(3\)"),
        ("model={positions: {kind: learned, combine: concatenate}}", "set tie_embeddings=none"),
        ("data.validation_share=0", "data.validation_share"),
        (
            "training.carry_state=true",
            "training.carry_state: given true, but model.kind decoder_only has no state to carry: set "
            "model.kind=recurrent, or leave training.carry_state out$",
        ),
    ],
)
def test_what_is_for_another_task_or_cannot_be_is_one_line(override, told):
    with pytest.raises(ConfigError, match=told) as refusal:
        load(override)
    assert "\n" not in str(refusal.value)


def test_a_translator_cannot_be_decoder_only(tiny_config):
    with pytest.raises(ConfigError, match="allowed: one_to_one, encoder_decoder, recurrent"):
        tiny_config("model.kind=decoder_only")


# what is prepared


def test_first_weights_are_the_seed_s(prepared):
    first, again, other = (
        prepared(f"seed={seed}", folder=name).job.model for seed, name in ((1, "a"), (1, "b"), (2, "c"))
    )
    assert_equal_states(first, again)
    assert not torch.equal(first.head.weight, other.head.weight)


def test_the_vocabulary_is_of_the_text_that_is_trained_on_alone(tiny_text_config, tmp_path):
    (tmp_path / "late.txt").write_text("ab\n" * 100 + "ü" * 20, encoding="utf-8")
    config = tiny_text_config(f"data.root={tmp_path}", "data.source=late.txt")
    text = prepare_training(config, tmp_path / "run", lambda line: None).job.text
    assert set(text.tokens["train"].tolist()) == {5, 6, 7}
    assert 3 in text.tokens["validation"]  # unknown


def test_what_was_read_and_tokenised_is_not_read_again(prepared, tmp_path):
    prepared()
    assert "characters" in prepared.said[0] and "vocabulary of" in prepared.said[0]
    prepared.said.clear()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*") if path.is_file()}
    prepared("data.source=gone.txt")
    assert not prepared.said
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_a_run_that_starts_from_another_has_its_weights_and_its_vocabulary(prepared, trained_on_text, tmp_path):
    parent = trained_on_text()
    child = prepared(f"training.from={parent.folder}", "seed=5")
    assert_equal_states(child.job.model, parent.trained.model)
    assert (tmp_path / "run" / "tokenizer.json").read_bytes() == (parent.folder / "tokenizer.json").read_bytes()


def test_a_text_shorter_than_a_window_is_one_line(prepared):
    with pytest.raises(DataError, match=r"give more text, or lower model\.max_length"):
        prepared("model.max_length=100000")


# the job


def test_validation_left_open_takes_at_most_a_tenth_of_the_tokens(prepared):
    job = prepared("training.validate_every=null", "training.batch_tokens=32").job
    cost = READING_COST * len(job.text.tokens["validation"])
    assert 0.09 < cost / (job.validate_every * 32) <= VALIDATION_SHARE == 0.1
    assert prepared("training.validate_every=7").job.validate_every == 7


def test_validation_is_of_the_whole_text_kept_for_it(prepared):
    job = prepared().job
    job.model.eval()
    found = job.validate(job.model, CPU)
    total, tokens = 0.0, torch.from_numpy(job.text.tokens["validation"].astype("int64"))
    for start in range(0, len(tokens) - 1, 16):
        window = tokens[start : start + 17]
        logits = job.model.scores(window[None, :-1])[0].detach()
        total += float(torch.nn.functional.cross_entropy(logits, window[1:], reduction="sum"))
    assert found["loss"] == pytest.approx(total / (len(tokens) - 1), rel=1e-5)


@pytest.mark.parametrize("more", ["training.label_smoothing=0.2", "training.z_loss=0.1"])
def test_smoothing_and_z_loss_are_in_the_loss_and_not_in_the_plain_one(prepared, more):
    job = prepared("training.label_smoothing=0", more).job
    batch = job.load(job.plan(0)[0])
    with torch.no_grad():
        found, scores = job.loss(job.model, batch, CPU), job.model.scores(**batch.inputs)
    plain = torch.nn.functional.cross_entropy(scores.mT, batch.targets, reduction="sum")
    assert float(found.plain) == pytest.approx(float(plain), rel=1e-5)
    assert float(found.total) != pytest.approx(float(plain), rel=1e-3)


# choices


def test_a_schedule_left_open_gets_a_rate_that_falls_with_the_width(prepared, tiny_text_config):
    assert prepared().config.training.schedule == tiny_text_config().training.schedule
    rates = [
        prepared("training={max_updates: 1}", f"model.d_model={width}").config.training.schedule.learning_rate
        for width in (32, 128)
    ]
    assert rates[0] == pytest.approx(2 * rates[1])
    recurrent = prepared("training={max_updates: 1}", "model={kind: recurrent, hidden_size: 128}").config.training
    assert recurrent.schedule.learning_rate == rates[1]


# a finished run


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.safetensors"])
def test_a_run_that_is_not_whole_says_what_it_lacks(trained_on_text, tmp_path, missing):
    folder = shutil.copytree(trained_on_text().folder, tmp_path / "run")
    (folder / missing).unlink()
    with pytest.raises(RunError, match=f"run has no {missing}: train it first"):
        task_named("language_modelling").open(trained_on_text().config, folder, CPU)
