import os
from collections import Counter
from hashlib import sha256
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from regardant.data.cleaning import CleaningReport, Reason
from regardant.data.parallel import MARKER, Pairs, PairsConfig, Splits
from regardant.errors import DataError


def write_corpus(folder: Path, name: str, pairs: list[tuple[str, str]]) -> dict[str, str]:
    for side, extension in enumerate(("en", "fr")):
        (folder / f"{name}.{extension}").write_text("".join(pair[side] + "\n" for pair in pairs))
    return {"source": f"{name}.en", "target": f"{name}.fr"}


def numbered(count: int) -> list[tuple[str, str]]:
    return [(f"sentence {number}", f"phrase {number}") for number in range(count)]


def pairs_of(dataset) -> list[tuple[str, str]]:
    return list(zip(dataset["source"], dataset["target"], strict=True))


def all_pairs(splits: Splits) -> dict[str, list[tuple[str, str]]]:
    sets = {"train": splits.train, "validation": splits.validation, **splits.tests}
    return {name: pairs_of(dataset) for name, dataset in sets.items()}


@pytest.fixture
def corpus(tmp_path):
    return PairsConfig(root=str(tmp_path), **write_corpus(tmp_path, "train", numbered(400)))


def test_what_is_not_given_is_split_off(tmp_path, corpus):
    sets = all_pairs(corpus.read(tmp_path / "out", seed=1))
    assert {name: len(pairs) for name, pairs in sets.items()} == {"train": 360, "validation": 20, "test": 20}
    assert sorted(chain.from_iterable(sets.values())) == sorted(numbered(400))
    for pairs in sets.values():
        assert pairs == sorted(pairs, key=numbered(400).index)


def test_the_split_depends_on_the_seed_and_nothing_else(tmp_path, corpus):
    first, again, other = (corpus.read(tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert all_pairs(first) == all_pairs(again) != all_pairs(other)
    assert first.fingerprints == again.fingerprints
    assert not set(first.fingerprints.values()) & set(other.fingerprints.values())


def test_the_split_does_not_depend_on_the_order_of_lines(tmp_path, corpus):
    backwards = corpus.model_copy(update=write_corpus(tmp_path, "backwards", numbered(400)[::-1]))
    first, second = corpus.read(tmp_path / "a", seed=1), backwards.read(tmp_path / "b", seed=1)
    assert set(pairs_of(first.tests["test"])) == set(pairs_of(second.tests["test"]))
    assert first.fingerprints["train"] != second.fingerprints["train"]


@settings(max_examples=30, deadline=None)
@given(
    sources=st.lists(st.sampled_from("abcdefghijkl"), min_size=30, max_size=60),
    validation_size=st.integers(1, 4),
    test_size=st.integers(1, 4),
    seed=st.integers(),
)
def test_sizes_are_exact_and_no_source_is_in_two_sets(tmp_path_factory, sources, validation_size, test_size, seed):
    folder = tmp_path_factory.mktemp("shared")
    pairs = [(source, f"target {number}") for number, source in enumerate([*sources, *"mnopqrstuv"])]
    files = write_corpus(folder, "train", pairs)
    config = PairsConfig(root=str(folder), **files, validation_size=validation_size, test_size=test_size)
    splits = config.read(folder / "out", seed)
    sets = all_pairs(splits)
    assert (len(sets["validation"]), len(sets["test"])) == (validation_size, test_size)
    seen = Counter(source for pairs in sets.values() for source in {source for source, _ in pairs})
    assert set(seen.values()) == {1}
    num_kept = sum(map(len, sets.values()))
    assert splits.report.kept == num_kept == len(pairs) - left_out(splits)


def left_out(splits: Splits) -> int:
    dropped = splits.report.dropped.get(Reason.SOURCE_HELD_OUT)
    return dropped.count if dropped else 0


def test_pairs_of_a_source_that_is_cut_through_are_counted(tmp_path):
    files = write_corpus(tmp_path, "train", [("same" if n < 50 else f"other {n}", f"{n}") for n in range(53)])
    config = PairsConfig(root=str(tmp_path), **files, validation_size=1, test_size=1)
    counts = {left_out(config.read(tmp_path / f"{seed}", seed)) for seed in range(12)}
    assert counts == {0, 49}


def test_given_sets_are_taken_line_for_line(tmp_path):
    odd = [("", "x"), ("a", "x"), ("a", "x"), ("b" * 3000, "x")]
    config = PairsConfig(
        root=str(tmp_path),
        **write_corpus(tmp_path, "train", numbered(10) + odd),
        validation=Pairs(**write_corpus(tmp_path, "valid", odd)),
        test=Pairs(**write_corpus(tmp_path, "test", odd[:2])),
    )
    splits = config.read(tmp_path / "out", seed=1)
    assert all_pairs(splits) == {"train": numbered(10) + odd[1:2], "validation": odd, "test": odd[:2]}
    assert {str(reason): dropped.count for reason, dropped in splits.report.dropped.items()} == {
        "empty": 1,
        "duplicate": 1,
        "over_long": 1,
    }


def test_bad_encoding_is_counted_in_training_and_an_error_in_evaluation(tmp_path, corpus):
    text = (tmp_path / "train.fr").read_bytes().replace(b"phrase 6\n", b"caf\xe9\n")
    (tmp_path / "train.fr").write_bytes(text)
    report = corpus.read(tmp_path / "out", seed=1).report
    assert (report.dropped[Reason.BAD_ENCODING].count, report.dropped[Reason.BAD_ENCODING].first_line) == (1, 7)
    given_test = corpus.model_copy(update={"test": Pairs(source="train.en", target="train.fr")})
    with pytest.raises(DataError, match=r"train\.fr line 7 is not valid UTF-8"):
        given_test.read(tmp_path / "other", seed=1)


def test_a_table_is_read_by_its_columns(tmp_path, corpus):
    lines = [f"{source}\t{target}" for source, target in numbered(400)]
    (tmp_path / "all.tsv").write_text("\n".join(["en\tfr", *lines]))
    table = PairsConfig(root=str(tmp_path), table="all.tsv", source="en", target="fr")
    from_files, from_table = corpus.read(tmp_path / "a", seed=1), table.read(tmp_path / "b", seed=1)
    assert from_files.fingerprints == from_table.fingerprints


def test_splits_are_opened_again_without_the_files_they_came_from(tmp_path, corpus):
    splits = corpus.read(tmp_path / "out", seed=1)
    for path in tmp_path.glob("train.*"):
        path.unlink()
    again = Splits.load(tmp_path / "out")
    assert all_pairs(again) == all_pairs(splits)
    assert (again.report, again.fingerprints) == (splits.report, splits.fingerprints)
    assert again.train.column_names == ["source", "target"]
    assert again.train.cache_files[0]["filename"].startswith(str(tmp_path / "out"))  # mapped, not loaded


def test_fingerprints_are_those_of_other_machines(tmp_path):
    pairs = [("a", "é"), ("ab", "")]
    splits = Splits.write(tmp_path / "out", {"train": pairs, "validation": [], "test": pairs[::-1]}, CleaningReport())
    assert splits.fingerprints == {
        "train": sha256("1 a2 é2 ab0 ".encode()).hexdigest(),
        "validation": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",  # of nothing
        "test": sha256("2 ab0 1 a2 é".encode()).hexdigest(),
    }


def test_nothing_is_left_of_a_reading_that_fails(tmp_path, corpus):
    with (tmp_path / "train.en").open("a") as file:
        file.write("one more\n")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DataError, match="401 lines"):
        corpus.read(tmp_path / "out", seed=1)
    assert sorted(tmp_path.iterdir()) == before


def test_a_failed_reading_keeps_the_splits_there_were(tmp_path, corpus):
    splits = corpus.read(tmp_path / "out", seed=1)
    (tmp_path / "train.en").write_text("")
    with pytest.raises(DataError):
        corpus.read(tmp_path / "out", seed=1)
    assert Splits.load(tmp_path / "out").fingerprints == splits.fingerprints


def test_reading_again_replaces_the_splits(tmp_path, corpus):
    corpus.read(tmp_path / "out", seed=1)
    second = corpus.read(tmp_path / "out", seed=2)
    assert Splits.load(tmp_path / "out").fingerprints == second.fingerprints
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        [MARKER, "train.arrow", "validation.arrow", "test.arrow"]
    )


def test_a_folder_of_something_else_is_not_replaced(tmp_path, corpus):
    with pytest.raises(DataError, match="holds something else"):
        corpus.read(tmp_path, seed=1)
    assert (tmp_path / "train.en").is_file()


def test_a_folder_without_its_marker_is_not_whole(tmp_path, corpus):
    corpus.read(tmp_path / "out", seed=1)
    (tmp_path / "out" / MARKER).unlink()
    with pytest.raises(DataError, match="no complete splits"):
        Splits.load(tmp_path / "out")


def test_a_corpus_of_which_nothing_is_left_says_why(tmp_path):
    config = PairsConfig(
        root=str(tmp_path), **write_corpus(tmp_path, "train", [("", "x"), ("", "y"), ("a" * 3000, "x")])
    )
    with pytest.raises(DataError, match=r"train\.en and train\.fr: .*0 of 3 pairs kept, 2 empty, 1 over long"):
        config.read(tmp_path / "out", seed=1)


def test_three_sources_are_enough_and_two_are_not(tmp_path):
    three = PairsConfig(root=str(tmp_path), **write_corpus(tmp_path, "three", numbered(3)))
    assert [len(pairs) for pairs in all_pairs(three.read(tmp_path / "out", seed=1)).values()] == [1, 1, 1]
    for name, pairs, problem in (
        ("two", numbered(2), "2 pairs of 2 sources leave none to train on after 1 to validation and 1 to test"),
        ("same", [("a", str(n)) for n in range(100)], "100 pairs of 1 sources leave none to train on after 5 to"),
    ):
        config = PairsConfig(root=str(tmp_path), **write_corpus(tmp_path, name, pairs))
        with pytest.raises(DataError, match=problem):
            config.read(tmp_path / "other", seed=1)


def test_an_empty_test_set_is_refused(tmp_path, corpus):
    config = corpus.model_copy(update={"test": Pairs(**write_corpus(tmp_path, "none", []))})
    with pytest.raises(DataError, match=r"none\.en and none\.fr: no pair to evaluate on"):
        config.read(tmp_path / "out", seed=1)


def test_a_missing_test_file_is_noticed_before_training_text_is_read(tmp_path):
    (tmp_path / "train.en").write_text("unequal\n")
    (tmp_path / "train.fr").write_text("")
    config = PairsConfig(
        root=str(tmp_path), source="train.en", target="train.fr", test=Pairs(source="test.en", target="test.fr")
    )
    with pytest.raises(DataError, match=r"no file .*test\.en"):
        config.read(tmp_path / "out", seed=1)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"split": "train"}, "split and subset are for"),
        ({"table": "a.tsv.gz", "subset": "en-fr"}, "split and subset are for"),
        ({"validation": {"source": "a", "target": "b"}, "validation_size": 5}, "validation_size splits pairs off"),
        ({"test": {"source": "a", "target": "b"}, "test_size": 5}, "test_size splits pairs off"),
        ({"test_size": 0}, "greater than 0"),
        ({"tset": {}}, "Extra inputs"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(settings, problem):
    with pytest.raises(ValidationError, match=problem):
        PairsConfig(source="a", target="b", **settings)


@pytest.mark.skipif("REGARDANT_DATA" not in os.environ, reason="REGARDANT_DATA names no folder of real data")
def test_multi30k_is_read_whole(tmp_path):
    def files(name):
        return {"source": f"{name}.en.gz", "target": f"{name}.fr.gz"}

    config = PairsConfig(
        root=os.path.join(os.environ["REGARDANT_DATA"], "multi30k"),
        **files("train"),
        validation=Pairs(**files("val")),
        test=Pairs(**files("test2016")),
    )
    splits = config.read(tmp_path / "out", seed=1)
    assert splits.report.read == 29_000
    assert len(splits.train) == splits.report.kept == 28_995
    assert (len(splits.validation), len(splits.tests["test"])) == (1014, 1000)
    assert splits.train[0]["source"] == "Two young, White males are outside near many bushes."


def test_a_root_may_name_an_environment_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("CORPORA", str(tmp_path.parent))
    files = write_corpus(tmp_path, "train", numbered(40))
    by_variable = PairsConfig(root=f"${{CORPORA}}/{tmp_path.name}", **files).read(tmp_path / "one", 1)
    by_path = PairsConfig(root=str(tmp_path), **files).read(tmp_path / "other", 1)
    assert by_variable.fingerprints == by_path.fingerprints
    monkeypatch.delenv("CORPORA")
    with pytest.raises(DataError, match=r"data\.root names CORPORA, which is not set"):
        PairsConfig(root="$CORPORA", **files).read(tmp_path / "third", 1)
