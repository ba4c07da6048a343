"""Runs stored in every format of the run folder open, and answer as they did when they were made."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

import regardant
from regardant import run as runs
from regardant.errors import RunError
from regardant.run.folder import Record
from regardant.run.migrations import FORMAT, migrated
from regardant.tasks import load_recipe
from tests.golden.make import RUNS, answers

HERE = Path(__file__).parent
STORED = HERE / "format-1"
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


def content_of(folder):
    return yaml.safe_load((folder / "run.yaml").read_text(encoding="utf-8"))


def test_there_are_stored_runs_of_every_format():
    assert {one.name for one in HERE.glob("format-*")} == {f"format-{number}" for number in range(1, FORMAT + 1)}
    for number in range(2, FORMAT + 1):
        stored = [folder for folder in (HERE / f"format-{number}").iterdir() if folder.is_dir()]
        assert len(stored) >= 3 and {content_of(folder)["format"] for folder in stored} == {number}
    assert not any("format" in content_of(STORED / name) for name in TRANSLATORS)


@pytest.mark.parametrize("number", range(2, FORMAT + 1))
@pytest.mark.parametrize("name", RUNS)
def test_a_stored_run_answers_as_it_did(number, name, tmp_path):
    folder = shutil.copytree(HERE / f"format-{number}" / name, tmp_path / name)
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    assert_alike(answers(folder, expected["items"]), expected)


def assert_alike(found, expected):
    """Hold plain values to those of another machine: texts are the same, numbers nearly."""
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert found.keys() >= expected.keys()  # a later version may tell more
        for name, one in expected.items():
            assert_alike(found[name], one)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            assert_alike(*pair)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-6)
    else:
        assert found == expected


@pytest.mark.parametrize("number", range(2, FORMAT + 1))
def test_a_stored_training_is_resumed(number, tmp_path):
    folder = shutil.copytree(HERE / f"format-{number}" / "translation", tmp_path / "run")
    outcome = runs.train(load_recipe(content_of(folder)["asked"], ["training.max_updates=305"]), folder)
    assert outcome.finished and outcome.cursor.update == 305
    assert content_of(folder)["format"] == FORMAT
    assert regardant.load(folder).predict(["3 1 4"])


def test_a_run_of_the_first_format_is_migrated():
    record = Record.read(STORED / "luong")
    assert record.files == {}
    content = content_of(STORED / "luong")
    found = migrated(content, "run.yaml")
    assert found == {**content, "format": FORMAT, "files": {}} and "format" not in content
    kept = migrated({"files": {"model.safetensors": "0" * 64}}, "run.yaml")
    assert kept["files"] == {"model.safetensors": "0" * 64}, "some runs of format 1 have fingerprints"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (FORMAT + 1, f"is of format {FORMAT + 1}, and this version reads up to {FORMAT}: install the version of"),
        (0, f"format: given 0; allowed: 1 to {FORMAT}: restore the file, or train anew"),
        ("2", "format: given '2'; allowed"),
        (True, "format: given True; allowed"),
    ],
)
def test_a_format_that_is_unknown_is_one_line(given, line, tmp_path):
    folder = shutil.copytree(STORED / "luong", tmp_path / "run")
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump({**content_of(folder), "format": given}), encoding="utf-8")
    with pytest.raises(RunError, match=re.escape(line)) as error:
        regardant.load(folder)
    assert "run.yaml" in str(error.value) and "\n" not in str(error.value)


def test_a_run_without_what_its_format_has_is_damaged(tmp_path):
    folder = shutil.copytree(HERE / f"format-{FORMAT}" / "translation", tmp_path / "run")
    content = content_of(folder)
    del content["files"]
    (folder / "run.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(RunError, match="is damaged \\(no 'files'\\)"):
        regardant.load(folder)
