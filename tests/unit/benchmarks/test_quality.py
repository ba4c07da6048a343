"""Bars of quality by time, and what is kept of a system that is measured alone."""

import json

import pytest

from benchmarks import quality
from benchmarks.ladder import OF_MACHINE
from benchmarks.records import Measurement
from regardant import config
from regardant.tasks.translation.config import TranslationConfig


def points(*scores):
    found = [{"minutes": minutes, "bleu": score} for minutes, score in zip(quality.MINUTES, scores, strict=True)]
    return {"points": found}


def system(*scores):
    return points(*scores) | {"machine": dict.fromkeys(OF_MACHINE, "X"), "commit": "abc"}


def test_each_time_is_held_to_the_best_of_the_others():
    systems = {
        quality.REGARDANT: system(20.0, 33.0, 38.0, 41.0),
        quality.JOEYNMT: system(5.0, 20.0, 33.0, 38.0),
        quality.TRAINER: system(21.0, 30.0, 34.0, 36.0),
    }
    within_30, *over = quality.bars(systems)
    assert (within_30["value"], within_30["pass"]) == (38.0, False)
    assert [one["value"] for one in over] == pytest.approx([-1.0, 3.0, 4.0, 3.0])
    assert [one["pass"] for one in over] == [False, True, True, True]


def test_the_others_have_the_size_of_the_recipe():
    sizes = config.load(TranslationConfig, config.recipe(quality.RECIPE), [], origin=quality.RECIPE).model
    assert (sizes.d_model, sizes.num_heads) == (quality.SHAPE["d_model"], quality.SHAPE["num_heads"])
    assert sizes.encoder.num_layers == sizes.decoder.num_layers == quality.SHAPE["num_layers"]
    assert sizes.feed_forward.kind == "gated" and 3 * sizes.d_ff == 2 * quality.SHAPE["d_ff"]


def test_a_system_alone_is_kept_without_a_verdict(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.records.SCRATCH", tmp_path)
    quality.keep({quality.JOEYNMT: system(1.0, 2.0, 3.0, 4.0)}, Measurement(scratch=True))
    kept = json.loads((tmp_path / "quality.json").read_text())
    assert kept["systems"][quality.JOEYNMT]["points"][3]["bleu"] == 4.0
    assert "bars" not in kept and "pass" not in kept


def test_settings_of_a_peer_are_chosen_on_the_validation_text(monkeypatch):
    asked = []

    def train_peer(program, library, settings, translated, minutes):
        asked.append((settings, translated, minutes))
        bleu = 30.0 if settings == quality.CANDIDATES[2] else 20.0
        return [{"minutes": budget, "bleu": bleu, "updates": 1} for budget in minutes]

    monkeypatch.setattr(quality, "train_peer", train_peer)
    found = quality.SYSTEMS[quality.JOEYNMT](quality.MINUTES)
    choices = [(one, "val", (quality.CHOICE_MINUTES,)) for one in quality.CANDIDATES]
    assert asked == [*choices, (quality.CANDIDATES[2], "test2016", quality.MINUTES)]
    assert found["settings"] == quality.CANDIDATES[2]
    assert [one["bleu"] for one in found["candidates"]] == [20.0, 20.0, 30.0, 20.0]
    assert [one["bleu"] for one in found["points"]] == [30.0] * 4


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """The systems that are measured, each with a BLEU of 49 or, of ours, 50; results are written to a folder."""
    found = []

    def measuring(name):
        bleu = 50.0 if name == quality.REGARDANT else 49.0
        return lambda minutes: found.append(name) or points(*[bleu] * 4)

    monkeypatch.setattr("benchmarks.records.SCRATCH", tmp_path)
    monkeypatch.setattr(quality, "FOLDER", tmp_path / "runs")
    monkeypatch.setattr(quality, "SYSTEMS", {name: measuring(name) for name in quality.SYSTEMS})
    return found


def test_all_systems_are_measured_though_all_are_kept(measured):
    for _ in range(2):
        quality.main(["--scratch"])
    assert measured == [*quality.SYSTEMS] * 2


def test_a_system_that_is_not_measured_again_keeps_its_machine_and_its_commit(measured, tmp_path):
    quality.main(["--scratch"])
    path = tmp_path / "quality.json"
    result = json.loads(path.read_text())
    for one in result["systems"].values():
        one |= {"machine": one["machine"] | {"cpu": "old"}, "commit": "old"}
    path.write_text(json.dumps(result))
    quality.main(["--scratch", quality.JOEYNMT])
    kept = json.loads(path.read_text())
    commits = {name: one["commit"] for name, one in kept["systems"].items()}
    assert commits == {name: kept["commit"] if name == quality.JOEYNMT else "old" for name in quality.SYSTEMS}
    cpu = {name: one["machine"]["cpu"] for name, one in kept["systems"].items()}
    assert cpu[quality.TRAINER] == "old" != cpu[quality.JOEYNMT]
    assert "bars" not in kept  # minutes of two machines are not equal


def test_a_missed_bar_ends_with_an_error_after_all_are_measured(measured, monkeypatch):
    quality.main(["--scratch"])
    measured.clear()
    monkeypatch.setitem(quality.SYSTEMS, quality.REGARDANT, lambda minutes: points(*[8.0] * 4))
    with pytest.raises(SystemExit, match="MISSED: 5 of 5 bars"):
        quality.main(["--scratch"])
    assert measured == [quality.JOEYNMT, quality.TRAINER]
