"""The ladder is compared from what was kept of it, and what is kept is not trained again."""

import gzip
import json

import pytest

from benchmarks import ladder, recipes, records
from benchmarks.records import Measurement
from regardant import config

WORDS = ["a", "cat", "sat", "on", "the", "mat", "and", "looked", "at", "two", "small", "dogs", "that", "ran"]
SENTENCES = 40


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The Transformer makes no mistake, attention a few, in short lines, the fixed context many, in long ones."""
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(records, "uncommitted", lambda: [])
    monkeypatch.setattr(ladder, "folder", lambda: tmp_path)
    monkeypatch.setattr(ladder, "measure", lambda asked, measurement: pytest.fail(f"{asked.name} is trained again"))
    monkeypatch.setattr(Measurement, "keep", lambda self, name, result: kept.update(result))
    monkeypatch.setattr(Measurement, "draw", lambda self, name, chart: kept.setdefault("figures", []).append(name))
    lines = [" ".join(WORDS[row % 5 : row % 5 + 5 + row % 4]) for row in range(SENTENCES)]
    for name in ladder.TEST_FILES:
        (tmp_path / name).write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    (tmp_path / "results" / "ladder").mkdir(parents=True)
    kept: dict = {}
    measurement = Measurement(scratch=False)

    def write(asked, wrong: int, bfloat16: bool = True) -> None:
        by_length = sorted(range(SENTENCES), key=lambda row: len(lines[row].split()), reverse="fixed" in asked.name)
        translated = [line if row not in by_length[:wrong] else "no word of it" for row, line in enumerate(lines)]
        ladder.translations(asked, measurement).write_text("".join(f"{line}\n" for line in translated))
        told = dict.fromkeys(ladder.OF_TRAINING, 1) | {
            "machine": {"cpu": "X", "cores": 2, "instructions": "AVX512", "bfloat16": bfloat16},
            "validations": [{"minutes": 1.0, "loss": 2.0, "bleu": 3.0}],
        }
        measurement.path(asked.name).write_text(json.dumps(told))

    for name in config.recipes():
        if name.startswith("ladder/"):
            mistakes = {"ladder/gru-fixed": 30, "ladder/gru-bahdanau": 10, "ladder/transformer": 0}
            write(recipes.Asked(name), mistakes.get(name, 20))
    for rung in ("transformer", *ladder.ENCODERS):
        write(recipes.Asked(f"ladder/{rung}", updates=ladder.EQUAL_UPDATES), 0)
    return kept, write


def test_what_was_kept_is_compared_and_not_trained_again(kept, capsys):
    found, _ = kept
    ladder.main([])
    runs = found["equal_minutes"]
    assert runs["transformer"]["bleu"] == pytest.approx(100)
    assert 0 < runs["gru-fixed"]["bleu"] < runs["gru-bahdanau"]["bleu"] < 100
    assert runs["gru-bahdanau"]["against_first"]["p"] < 0.05
    assert found["figures"] == ["bleu_by_length", "loss_by_minutes"]
    assert "pass" in capsys.readouterr().out


def test_an_encoder_that_falls_behind_misses_its_bar(kept):
    found, write = kept
    write(recipes.Asked("ladder/linear", updates=ladder.EQUAL_UPDATES), 5)
    with pytest.raises(SystemExit, match="MISSED: 1 of 7 bars: BLEU of linear encoder over softmax"):
        ladder.main([])
    assert [one["bar"] for one in found["bars"] if not one["pass"]] == ["BLEU of linear encoder over softmax"]


def test_minutes_of_two_machines_are_not_compared(kept, capsys):
    found, write = kept
    write(recipes.Asked("ladder/cosine"), 5, bfloat16=False)
    ladder.main([])
    assert "cosine" not in found["equal_minutes"]
    assert "left out, since they were trained on another machine: ladder/cosine\n" in capsys.readouterr().out
    write(recipes.Asked("ladder/gru-bahdanau"), 5, bfloat16=False)
    with pytest.raises(SystemExit, match="measure ladder/cosine, ladder/gru-bahdanau again"):
        ladder.main([])


def test_nothing_is_compared_before_every_rung_of_a_bar_is_there(kept, capsys):
    found, _ = kept
    asked = recipes.Asked("ladder/performer", updates=ladder.EQUAL_UPDATES)
    ladder.translations(asked, Measurement(scratch=False)).unlink()
    ladder.main(["transformer"])
    assert not found
    assert capsys.readouterr().out == "not compared yet, these have no result: ladder/performer-2000-updates\n"


def test_a_rung_without_its_translations_is_trained_again(kept):
    ladder.translations(recipes.Asked("ladder/linear"), Measurement(scratch=False)).unlink()
    with pytest.raises(pytest.fail.Exception, match="ladder/linear is trained again"):
        ladder.main(["linear"])


def compared(bleu, difference, p, quarters):
    by_length = [{"words": [1, 2], "bleu": one} for one in quarters]
    against = {"difference": difference, "p": p}
    return {"bleu": bleu, "against_first": against, "by_length": by_length}


def test_bars_of_the_ladder_pass_and_fail():
    fixed = compared(20.0, None, None, [25.0, 15.0])
    good = {
        "gru-fixed": fixed,
        "gru-bahdanau": compared(26, 6, 0.01, [29, 23]),
        "transformer": compared(30, 10, 0.01, []),
    }
    assert all(one["pass"] for one in ladder.of_attention(good))
    weak = compared(23.0, 3.0, 0.2, [29.0, 16.0])
    bad = {"gru-fixed": fixed, "gru-bahdanau": weak, "transformer": compared(22, 2, 0.1, [])}
    assert not any(one["pass"] for one in ladder.of_attention(bad))
    encoders = {name: compared(0, by, 0.5, []) for name, by in zip(ladder.ENCODERS, (-1.4, -1.6, 2.0), strict=True)}
    assert [one["pass"] for one in ladder.of_encoders(encoders)] == [True, False, True]


def test_a_rung_of_other_settings_is_trained_again(kept):
    path = Measurement(scratch=False).path("ladder/linear")
    result = json.loads(path.read_text())
    path.write_text(json.dumps(result | {"settings": recipes.settings_of("ladder/linear")}))
    ladder.main(["linear"])
    path.write_text(json.dumps(result | {"settings": "other"}))
    with pytest.raises(pytest.fail.Exception, match="ladder/linear is trained again"):
        ladder.main(["linear"])
