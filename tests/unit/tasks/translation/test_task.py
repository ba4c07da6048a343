import copy
import shutil

import pytest
import torch

from regardant.errors import DataError, RunError
from regardant.layers.dropout import Dropout
from regardant.tasks import task_named
from regardant.tasks.sequence_to_sequence.job import DECODING_COST
from regardant.tasks.sequence_to_sequence.prepare import count_words, vocab_size_for
from regardant.tasks.translation.task import Translation, load_translator
from regardant.training.checkpoints import save_checkpoint

CPU = torch.device("cpu")


@pytest.fixture
def prepared(tiny_config, tmp_path):
    """What is prepared in a folder of its own for TINY with fields set; what was said is kept."""
    said = []

    def prepare(*overrides, folder="run"):
        return Translation().prepare(tiny_config(*overrides), tmp_path / folder, said.append)

    prepare.said = said
    return prepare


def assert_equal_states(model, other):
    torch.testing.assert_close(model.state_dict(), other.state_dict(), rtol=0, atol=0)


def test_first_weights_are_the_seed_s(prepared):
    first, again = prepared(folder="a").job.model, prepared(folder="b").job.model
    assert_equal_states(first, again)
    other = prepared("seed=2", folder="c").job.model.state_dict()
    assert all(
        (first.state_dict()[name] != weight).any() for name, weight in other.items() if name.endswith("output.weight")
    )


def test_what_was_read_and_tokenised_is_not_read_again(prepared, tmp_path):
    first = prepared()
    assert any("1,000 of 1,000 pairs kept" in line for line in prepared.said)
    assert prepared.said[-2:] == [
        "1,000 pairs to train on, 40 to validate, 110 to test (test), 10 to test (heldout); word vocabulary of 250",
        "model encoder_decoder: 1 + 1 layers, d_model 32, 2 heads, d_ff 64 (linear), sinusoidal positions, dropout 0",
    ]
    del prepared.said[-2:]
    kept = prepared.said.copy()
    prepared.said.clear()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*") if path.is_file()}
    again = prepared()
    assert kept and not set(kept) & set(prepared.said)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*") if path.is_file()} == before
    assert again.job.targets_per_epoch == first.job.targets_per_epoch


def test_a_run_that_starts_from_another_has_its_weights_and_its_vocabulary(prepared, trained, tmp_path):
    parent = trained()
    child = prepared(f"training.from={parent.folder}", "seed=5")
    assert_equal_states(child.job.model, parent.translator.model)
    assert (tmp_path / "run" / "tokenizer.json").read_bytes() == (parent.folder / "tokenizer.json").read_bytes()
    alone = prepared("seed=5", folder="alone").job.corpus
    assert alone.splits.fingerprints == child.job.corpus.splits.fingerprints
    assert (tmp_path / "alone" / "tokenizer.json").read_bytes() != (parent.folder / "tokenizer.json").read_bytes()


def test_starting_from_what_does_not_fit_or_is_not_there_is_one_line(prepared, trained, tmp_path):
    for overrides, error, told in (
        ([f"training.from={trained().folder}", "model.d_ff=32"], RunError, "does not fit this model"),
        ([f"training.from={tmp_path / 'nowhere'}"], DataError, "nowhere/tokenizer.json cannot be read"),
    ):
        with pytest.raises(error, match=told) as refusal:
            prepared(*overrides, folder=error.__name__)
        assert "\n" not in str(refusal.value)


def test_pairs_longer_than_the_model_are_counted_aloud(prepared):
    job = prepared("model.max_length=10").job
    assert job.batches.too_long > 0
    assert prepared.said[-2:] == [
        f"{job.batches.too_long} training pairs are longer than 10 tokens and left out",
        f"{job.validation.too_long} validation pairs are longer than 10 tokens and left out",
    ]


def test_no_pair_that_fits_is_one_line(prepared):
    with pytest.raises(DataError, match=r"none of the 1,000 pairs fits 2 tokens: raise model\.max_length"):
        prepared("model.max_length=2")


def test_the_vocabulary_follows_the_corpus_where_its_size_is_open(prepared):
    made = prepared("tokenizer.vocab_size=null")
    corpus = made.job.corpus
    words = sum(count_words(corpus.splits.train[side]) for side in ("source", "target"))
    assert corpus.tokenizers.source.vocab_size == vocab_size_for(words) > 500
    assert made.config.tokenizer.vocab_size == corpus.tokenizers.source.vocab_size  # so that run.yaml tells it


def test_a_resumed_run_needs_its_parent_no_more(prepared, trained, tmp_path):
    parent = shutil.copytree(trained().folder, tmp_path / "parent")
    prepared(f"training.from={parent}")
    save_checkpoint(tmp_path / "run", {}, update=1, keep=1)
    shutil.rmtree(parent)
    prepared(f"training.from={parent}")


def test_what_speed_decides_is_said_and_kept(prepared):
    made = prepared("training={max_minutes: 1, batch_tokens: 400}", "model={preset: tiny}")
    prepared.said.clear()
    training = made.with_speed(20_000.0, prepared.said.append).training
    assert training.schedule.learning_rate == 4e-3 and training.validate_every == made.job.validate_every
    (line,) = prepared.said
    assert line.startswith(
        "optimizer adamw, batches of 400 tokens, linear schedule (learning_rate 0.004, warmup_steps "
    )
    assert line.endswith(f"validation every {training.validate_every:,} updates")


def test_what_preset_auto_chooses_is_kept_to_the_end(prepared):
    made = prepared("training={max_minutes: 1}", "model={preset: auto}")
    training = made.with_speed(20_000.0, prepared.said.append).training
    assert (training.optimizer.kind, training.batch_tokens) == ("muon", 2048)
    assert training.schedule.learning_rate == pytest.approx(1.2e-2)


@pytest.mark.parametrize(("speed", "rate"), [(1e3, 0.1), (1e4, 0.2), (1e6, 0.3)])
def test_dropout_that_is_left_open_follows_the_passes(prepared, speed, rate):
    made = prepared(
        "training={max_minutes: 0.5, batch_tokens: 400}", "model={preset: auto, feed_forward_dropout: 0.05}"
    )
    weights = copy.deepcopy(made.job.model.state_dict())
    assert not any("dropout" in line for line in prepared.said)
    resolved = made.with_speed(speed, prepared.said.append)
    rates = {module.rate for module in made.job.model.modules() if isinstance(module, Dropout)}
    assert resolved.model.dropout == rate and rates == {rate, 0.05}
    assert any(line.startswith(f"dropout {rate:g}, since ") for line in prepared.said)
    torch.testing.assert_close(made.job.model.state_dict(), weights, rtol=0, atol=0)


def test_validation_that_would_eat_the_time_is_of_fewer_pairs_which_is_said(prepared):
    made = prepared("training={max_minutes: 0.1, batch_tokens: 400}", "data.validation_size=600")
    prepared.said.clear()
    made.with_speed(5000.0, prepared.said.append)
    left = len(made.job.validation.kept)
    assert 1 < left < 600
    assert prepared.said[0] == f"validation on {left} of 600 pairs, to stay within a tenth of the time"
    assert DECODING_COST * made.job.validation.targets_per_epoch <= 0.1 * 0.93 * 6 * 5000
    for minutes in (0.05, 9):
        resumed = prepared(f"training={{max_minutes: {minutes}, batch_tokens: 400}}", "data.validation_size=600")
        resumed.job.validate_on(made.job.validation_targets)
        resumed.with_speed(5000.0, prepared.said.append)
        assert resumed.job.validation.kept.tolist() == made.job.validation.kept.tolist()


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.safetensors"])
def test_a_run_that_is_not_whole_says_what_it_lacks(trained, tmp_path, missing):
    folder = shutil.copytree(trained().folder, tmp_path / "run")
    (folder / missing).unlink()
    with pytest.raises(RunError, match=f"run has no {missing}: train it first"):
        task_named("translation").open(trained().config, folder, CPU)


def test_a_loaded_translator_is_the_trained_one_and_drops_nothing_out(trained):
    model = load_translator(trained().config, trained().folder, CPU).model
    assert_equal_states(model, trained().translator.model)
    assert not model.training
