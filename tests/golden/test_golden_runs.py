"""Runs stored by earlier versions open, and answer as they did when they were made."""

import json
import shutil
from pathlib import Path

import pytest

import regardant

STORED = Path(__file__).parent / "0.1.0"
TRANSLATORS = ("encoder_decoder", "recurrent", "luong", "one_to_one")


def opened(name, tmp_path):
    folder = shutil.copytree(STORED / name, tmp_path / name)
    return regardant.load(folder), json.loads((folder / "expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_stored_translator_translates_as_it_did_token_by_token(name, tmp_path):
    run, expected = opened(name, tmp_path)
    for beam_size in (1, 5):
        found = run.translate(expected["sources"], beam_size=beam_size)
        kept = expected[f"beam_{beam_size}"]
        assert [one.tokens for one in found] == [one["tokens"] for one in kept]
        assert [one.score for one in found] == pytest.approx([one["score"] for one in kept], rel=1e-4)
    scores = run.score(expected["sources"], expected["targets"])
    assert scores == pytest.approx(expected["log_probabilities"], rel=1e-4)  # sums in another order


def test_a_stored_language_model_continues_and_scores_as_it_did(tmp_path):
    run, expected = opened("language_model", tmp_path)
    assert run.generate(expected["prompt"], max_tokens=60, temperature=0) == [expected["greedy"]]
    assert run.generate(expected["prompt"], max_tokens=60, seed=3) == [expected["sampled"]]
    score = run.score("Before we proceed any further, hear me speak.").as_dict()
    assert score == pytest.approx(expected["score"], rel=1e-4)


@pytest.mark.parametrize("name", [*TRANSLATORS, "language_model"])
def test_a_stored_run_can_be_diagnosed(name, tmp_path):
    run, _ = opened(name, tmp_path)
    assert len(run.doctor().seen) > 8


def test_a_stored_language_model_can_be_evaluated(tmp_path):
    run, _ = opened("language_model", tmp_path)
    validated = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    kept = min(one["loss"] for one in validated if one["event"] == "validation")
    assert run.evaluate()["validation"]["loss"] == pytest.approx(kept, rel=1e-3)
