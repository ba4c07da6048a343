from collections import Counter

import pytest
from pydantic import ValidationError

from regardant.data.parallel import Splits
from regardant.data.toys import CopyConfig, ReverseConfig


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return ReverseConfig(train_size=20_000).read(tmp_path_factory.mktemp("toys") / "reverse", seed=1)


@pytest.mark.parametrize(("config", "step"), [(ReverseConfig, -1), (CopyConfig, 1)])
def test_the_target_is_the_answer(tmp_path, config, step):
    splits = config(train_size=100, validation_size=50, test_size=50).read(tmp_path / "out", seed=1)
    for pairs in (splits.train, splits.validation, splits.tests["test"]):
        for source, target in zip(pairs["source"], pairs["target"], strict=True):
            assert target.split(" ") == source.split(" ")[::step]


def test_held_out_sequences_differ_and_are_never_trained_on(corpus):
    held_out = [*corpus.validation["source"], *corpus.tests["test"]["source"]]
    assert len(held_out) == len(set(held_out)) == 2000
    assert not set(held_out) & set(corpus.train["source"])


def test_half_of_the_short_sequences_are_left_to_train_on(corpus):
    trained = Counter(source for source in corpus.train["source"] if len(source) == 1)
    held_out = {s for s in [*corpus.validation["source"], *corpus.tests["test"]["source"]] if len(s) == 1}
    assert len(held_out) == len(trained) == 5


def test_lengths_are_uniform(corpus):
    lengths = Counter(len(source.split()) for source in corpus.train["source"])
    assert set(lengths) == set(range(1, 26))
    assert all(abs(count - 800) < 150 for count in lengths.values())  # five standard deviations
    held_out = Counter(len(source.split()) for source in corpus.tests["test"]["source"])
    assert all(15 < held_out[length] < 75 for length in range(3, 26))


def test_validation_and_test_share_the_short_sequences(tmp_path):
    config = ReverseConfig(max_length=3, train_size=10, validation_size=200, test_size=200)
    splits = config.read(tmp_path / "out", seed=1)
    for pairs in (splits.validation, splits.tests["test"]):
        assert {len(source.split()) for source in pairs["source"]} == {1, 2, 3}


def test_symbols_are_digits_and_then_letters(tmp_path):
    splits = CopyConfig(symbols=12, train_size=1000).read(tmp_path / "out", seed=1)
    assert set("".join(splits.train["source"])) == set("0123456789ab ")


def test_equal_seeds_give_equal_corpora(tmp_path):
    config = ReverseConfig(train_size=50, validation_size=5, test_size=5)
    first, again, other = (config.read(tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert first.fingerprints == again.fingerprints
    assert not set(first.fingerprints.values()) & set(other.fingerprints.values())
    assert Splits.load(tmp_path / "a").fingerprints == first.fingerprints


def test_every_sequence_that_may_be_held_out_can_be(tmp_path):
    config = CopyConfig(symbols=2, max_length=3, train_size=100, validation_size=3, test_size=4)
    splits = config.read(tmp_path / "out", seed=1)
    assert len(set(splits.train["source"])) == 7


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"max_length": 3}, "ask for 2,000 different sequences and 555 may be held out"),
        ({"min_length": 5, "max_length": 4}, "must not exceed"),
        ({"symbols": 37}, "less than or equal to 36"),
        ({"symbols": 1}, "greater than or equal to 2"),
    ],
)
def test_settings_that_cannot_be_met_are_refused(settings, problem):
    with pytest.raises(ValidationError, match=problem):
        ReverseConfig(**settings)
