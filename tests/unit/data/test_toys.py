from collections import Counter
from random import Random

import pytest
from pydantic import ValidationError

from regardant.data.parallel import Splits
from regardant.data.toys import (
    AdditionConfig,
    CopyConfig,
    RecallConfig,
    ReverseConfig,
    SortConfig,
    VariableDistanceConfig,
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return ReverseConfig(train_size=20_000).read(tmp_path_factory.mktemp("toys") / "reverse", seed=1)


@pytest.mark.parametrize(("config", "step"), [(ReverseConfig, -1), (CopyConfig, 1)])
def test_the_target_is_the_answer(tmp_path, config, step):
    splits = config(train_size=100, validation_size=50, test_size=50).read(tmp_path / "out", seed=1)
    for pairs in (splits.train, splits.validation, splits.tests["test"]):
        for source, target in zip(pairs["source"], pairs["target"], strict=True):
            assert target.split(" ") == source.split(" ")[::step]


def added(source):
    """Return the sum of two numbers in lists, the lowest digit first."""
    first, second = (int(number.replace(" ", "")[::-1]) for number in source.split("+"))
    width = len(source.split("+")[0].split()) + 1
    return list(f"{first + second:0{width}}"[::-1])


def recalled(source):
    *pairs, asked = source.split()
    return [dict(zip(pairs[::2], pairs[1::2], strict=True))[asked]]


def at_distance(source):
    (at,) = (place for place, symbol in enumerate(source.split()) if symbol.isdigit())
    return [source.split()[at + int(source.split()[at])]]


ANSWERS = {
    SortConfig: lambda source: sorted(source.split()),
    AdditionConfig: added,
    RecallConfig: recalled,
    VariableDistanceConfig: at_distance,
}


def length_of(config, source):
    """Return the length of a sequence as its kind counts it."""
    symbols = source.split()
    return {AdditionConfig: len(symbols) // 2, RecallConfig: len(symbols) // 2}.get(config, len(symbols))


@pytest.mark.parametrize("config", ANSWERS)
def test_each_answer_is_what_its_kind_promises(tmp_path, config):
    made = config(train_size=500, validation_size=50, test_size=50, longer_size=200)
    splits = made.read(tmp_path / "out", seed=1)
    for pairs in (splits.train, splits.validation, *splits.tests.values()):
        for source, target in zip(pairs["source"], pairs["target"], strict=True):
            assert target.split(" ") == ANSWERS[config](source)
    longest = made.max_length
    assert {length_of(config, source) for source in splits.train["source"]} == set(range(made.min_length, longest + 1))
    longer = {length_of(config, source) for source in splits.tests["longer"]["source"]}
    assert longer == set(range(longest + 1, 2 * longest + 1))


def test_a_second_test_set_changes_no_other(tmp_path):
    sizes = {"train_size": 50, "validation_size": 5, "test_size": 5}
    first, second = (SortConfig(**sizes, longer_size=n).read(tmp_path / str(n), seed=1) for n in (0, 7))
    assert "longer" not in first.tests and len(second.tests["longer"]) == 7
    assert first.fingerprints.items() <= second.fingerprints.items()


def test_keys_are_asked_for_at_every_place_and_never_repeat(tmp_path):
    splits = RecallConfig(train_size=2000, max_length=4).read(tmp_path / "out", seed=1)
    places = Counter()
    for source in splits.train["source"]:
        *pairs, asked = source.split()
        keys = pairs[::2]
        assert len(set(keys)) == len(keys)
        places[len(keys), keys.index(asked)] += 1
    assert set(places) == {(count, place) for count in range(1, 5) for place in range(count)}


@pytest.mark.parametrize(
    ("config", "length", "count"), [(RecallConfig, 2, 2 * 2 * 10**2), (VariableDistanceConfig, 3, 3 * 2**2)]
)
def test_the_number_of_sequences_is_counted(config, length, count):
    made, random = config(symbols=2, max_length=length, validation_size=1, test_size=1), Random(1)
    assert len({made._draw(random, length) for _ in range(20_000)}) == made._count(length) == count


def test_distances_are_from_one_to_nine(tmp_path):
    splits = VariableDistanceConfig(train_size=3000).read(tmp_path / "out", seed=1)
    named = Counter(symbol for source in splits.train["source"] for symbol in source.split() if symbol.isdigit())
    assert set(named) == set("123456789")


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
        ({"longer_size": -1}, "greater than or equal to 0"),
    ],
)
def test_settings_that_cannot_be_met_are_refused(settings, problem):
    with pytest.raises(ValidationError, match=problem):
        ReverseConfig(**settings)


@pytest.mark.parametrize(
    ("config", "settings", "problem"),
    [
        (RecallConfig, {"symbols": 5}, "there is no sequence of length 6: raise symbols, or lower max_length"),
        (RecallConfig, {"symbols": 12, "longer_size": 1}, "there is no sequence of length 13: raise symbols"),
        (AdditionConfig, {"symbols": 11}, "less than or equal to 10"),
        (VariableDistanceConfig, {"min_length": 1}, "greater than or equal to 2"),
        (VariableDistanceConfig, {"symbols": 27}, "less than or equal to 26"),
    ],
)
def test_settings_without_sequences_are_refused(config, settings, problem):
    with pytest.raises(ValidationError, match=problem):
        config(**settings)
