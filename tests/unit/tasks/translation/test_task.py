import shutil

import pytest
import torch

from regardant.errors import DataError, RunError
from regardant.tasks.translation.choices import count_words, vocab_size_for
from regardant.tasks.translation.task import load_translator, prepare_training

CPU = torch.device("cpu")


@pytest.fixture
def prepared(tiny_config, tmp_path):
    """What is prepared in a folder of its own for TINY with fields set; what was said is kept."""
    said = []

    def prepare(*overrides, folder="run"):
        return prepare_training(tiny_config(*overrides), tmp_path / folder, said.append)

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
    prepared.said.clear()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*") if path.is_file()}
    again = prepared()
    assert not prepared.said
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*") if path.is_file()} == before
    assert again.job.corpus.target_tokens == first.job.corpus.target_tokens


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
    assert f"{job.batches.too_long} pairs are longer than the model's 10 tokens and left out" in prepared.said[-1]


def test_no_pair_that_fits_is_one_line(prepared):
    with pytest.raises(DataError, match=r"none of the 1,000 pairs fits 2 tokens: raise model\.max_length"):
        prepared("model.max_length=2")


def test_the_vocabulary_follows_the_corpus_where_its_size_is_open(prepared):
    corpus = prepared("tokenizer.vocab_size=null").job.corpus
    assert corpus.tokenizers.source.vocab_size == vocab_size_for(count_words(corpus.splits)) > 500


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.safetensors"])
def test_a_run_that_is_not_whole_says_what_it_lacks(trained, tmp_path, missing):
    folder = shutil.copytree(trained().folder, tmp_path / "run")
    (folder / missing).unlink()
    with pytest.raises(RunError, match=f"run has no {missing}: train it first"):
        load_translator(trained().config, folder, CPU)


def test_a_loaded_translator_is_the_trained_one_and_drops_nothing_out(trained):
    model = load_translator(trained().config, trained().folder, CPU).model
    assert_equal_states(model, trained().translator.model)
    assert not model.training
