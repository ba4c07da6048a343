"""Both sides of the benchmark of preparing do the work that is timed."""

import gzip

import pytest

from benchmarks import preparing

LINES = {
    "en": ["A dog runs on the beach.", "Two men play in the snow.", "A child eats an apple."],
    "de": ["Ein Hund rennt am Strand.", "Zwei Männer spielen im Schnee.", "Ein Kind isst einen Apfel."],
}


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    (tmp_path / "multi30k").mkdir()
    for language, lines in LINES.items():
        with gzip.open(tmp_path / "multi30k" / f"train.{language}.gz", "wt", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    monkeypatch.setenv("REGARDANT_DATA", str(tmp_path))
    preparing.write_pairs(tmp_path, 400)
    return tmp_path


def test_pairs_are_halves_of_the_same_sentences_on_both_sides(pairs):
    texts = {language: (pairs / f"train.{language}").read_text(encoding="utf-8") for language in LINES}
    english, german = (texts[language].splitlines() for language in ("en", "de"))
    assert len(english) == len(german) == 400
    assert ("A dog runs in the snow.", "Ein Hund spielen im Schnee.") in zip(english, german, strict=True)
    assert len(set(zip(english, german, strict=True))) == len(set(english)) == 9


def test_both_read_all_pairs(pairs, monkeypatch):
    monkeypatch.setattr(preparing, "VOCAB_SIZE", 300)
    assert preparing.library_alone(pairs) == 400
    kept = preparing.prepare(pairs, pairs / "run")
    assert 0 < kept <= 9, "of nine different ones, without what is held out"


def test_memory_that_must_stay_is_part_of_all_memory(pairs):
    found = preparing._timed("tokenizers", pairs)
    assert found["pairs"] == 400
    assert 0 < found["peak_anonymous_bytes"] <= found["peak_bytes"]
