"""Text and tables of the benchmarks of long sentences and of recurrent models."""

import gzip

from benchmarks import long_sentences, recurrent


def test_lines_are_joined_and_none_is_lost(tmp_path, monkeypatch):
    given = tmp_path / "multi30k"
    given.mkdir()
    lines = [f"line {number}" for number in range(16)]
    for part in ("train", "val", "test2016"):
        for language in ("en", "de"):
            with gzip.open(given / f"{part}.{language}.gz", "wt") as text:
                text.writelines(f"{line}\n" for line in lines)
    monkeypatch.setenv("REGARDANT_DATA", str(tmp_path))
    long_sentences.join_lines(tmp_path / "joined")
    with gzip.open(tmp_path / "joined" / "val.de.gz", "rt") as text:
        joined = text.read().splitlines()
    assert joined == [" ".join(lines[:7]), " ".join(lines[7:14]), " ".join(lines[14:])]


def test_rows_name_their_precision_and_ratio():
    rows = [
        {
            "name": name,
            "precision": "float32",
            "tokens_per_second": speed,
            "regardant_is_times_as_fast": times,
            "best_of_each": times,
        }
        for name, speed, times in (("regardant", 2500.0, 1.0), (recurrent.JOEYNMT, 1800.0, 1.389))
    ]
    lines = list(recurrent.table({"rows": rows, "bars": [], "versions": {"torch": "2.13.0"}}))
    assert lines[2].split() == ["JoeyNMT's", "model,", "float32", "1,800", "1.39", "1.39"]


def test_peers_are_those_of_the_same_training():
    names = [one.name for one in recurrent.CONTENDERS]
    assert names == ["regardant", "regardant", recurrent.JOEYNMT]
    assert {one.library for one in long_sentences.CONTENDERS} == {None, "transformers"}
