"""Bars of quality by time, and what is kept of a system that is measured alone."""

import json

import pytest

from benchmarks import quality
from benchmarks.records import OF_MACHINE
from regardant import config
from regardant.tasks.translation.config import TranslationConfig


def points(*scores, minutes=quality.MINUTES):
    return {"points": [{"minutes": budget, "bleu": bleu} for budget, bleu in zip(minutes, scores, strict=True)]}


def system(name, *scores, cpu="A Processor", minutes=quality.MINUTES):
    machine = dict.fromkeys(OF_MACHINE) | {"cpu": cpu}
    return {"name": name} | points(*scores, minutes=minutes) | {"machine": machine, "commit": "abc"}


def test_each_time_is_compared_with_each_other_system():
    systems = [
        system(quality.TRAINER, 21.0, 30.0, 34.0, 36.0),
        system(quality.REGARDANT, 20.0, 33.0, 38.0, 41.0),
        system(quality.JOEYNMT, 5.0, 20.0, 33.0, 38.0),
    ]
    within_30, *less = quality.bars(systems)
    assert (within_30["value"], within_30["pass"]) == (38.0, False)
    assert [one["value"] for one in less] == pytest.approx([-1.0, 3.0, 4.0, 5.0, 15.0, 13.0, 5.0, 3.0])
    assert [one["pass"] for one in less] == [False, *[True] * 7]
    assert less[4]["bar"] == "BLEU after 5 minutes less that of JoeyNMT, A Processor"


def test_scores_of_two_kinds_of_machine_are_not_compared():
    systems = [
        system(quality.REGARDANT, 20.0, 33.0, 38.0, 41.0),
        system(quality.JOEYNMT, 5.0, 20.0, 33.0, 38.0, cpu="B"),
    ]
    assert [one["value"] for one in quality.bars(systems)] == [38.0, None, None]


def test_times_that_our_system_lacks_are_not_measured():
    systems = [
        system(quality.REGARDANT, 20.0, 33.0, minutes=(5, 10)),
        system(quality.JOEYNMT, 5.0, 20.0, 33.0, 38.0),
    ]
    assert [one["value"] for one in quality.bars(systems)] == [None, 15.0, 13.0, None, None, None]


def test_the_others_have_the_size_of_the_recipe():
    sizes = config.load(TranslationConfig, config.recipe(quality.RECIPE), [], origin=quality.RECIPE).model
    assert (sizes.d_model, sizes.num_heads) == (quality.SHAPE["d_model"], quality.SHAPE["num_heads"])
    assert sizes.encoder.num_layers == sizes.decoder.num_layers == quality.SHAPE["num_layers"]
    assert sizes.feed_forward.kind == "gated" and 3 * sizes.d_ff == 2 * quality.SHAPE["d_ff"]


def test_settings_of_a_peer_are_chosen_on_the_validation_text(monkeypatch):
    asked = []

    def train_peer(program, library, settings, translated, minutes):
        asked.append((settings, translated, minutes))
        bleu = 30.0 if settings == quality.CANDIDATES[2] else 20.0
        found = []
        for budget in minutes:
            found.append({"minutes": budget, "bleu": bleu, "updates": 1})
            yield found

    monkeypatch.setattr(quality, "train_peer", train_peer)
    *_, found = quality.SYSTEMS[quality.JOEYNMT](quality.MINUTES)
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
        return lambda minutes: iter([found.append(name) or points(*[bleu] * 4)])

    monkeypatch.setattr("benchmarks.records.SCRATCH", tmp_path)
    monkeypatch.setattr(quality, "FOLDER", tmp_path / "runs")
    monkeypatch.setattr(quality, "SYSTEMS", {name: measuring(name) for name in quality.SYSTEMS})
    return found


def test_all_systems_are_measured_though_all_are_kept(measured, tmp_path):
    for _ in range(2):
        quality.main(["--scratch"])
    assert measured == [*quality.SYSTEMS] * 2
    assert len(json.loads((tmp_path / "quality.json").read_text())["systems"]) == 3


def test_what_is_measured_on_another_kind_of_machine_is_kept_beside(measured, tmp_path):
    quality.main(["--scratch"])
    path = tmp_path / "quality.json"
    result = json.loads(path.read_text())
    old = [one | {"machine": one["machine"] | {"cpu": "old"}, "commit": "old"} for one in result["systems"]]
    path.write_text(json.dumps(result | {"systems": old}))
    quality.main(["--scratch", quality.JOEYNMT])
    kept = json.loads(path.read_text())
    *before, new = kept["systems"]
    assert before == old
    assert (new["name"], new["commit"]) == (quality.JOEYNMT, kept["commit"])
    assert all(one["bar"].endswith(", old") for one in kept["bars"])


def test_points_are_kept_before_the_last_is_measured(measured, tmp_path, monkeypatch):
    def stopping(minutes):
        yield points(20.0, minutes=(5,))
        raise KeyboardInterrupt

    monkeypatch.setitem(quality.SYSTEMS, quality.REGARDANT, stopping)
    with pytest.raises(KeyboardInterrupt):
        quality.main(["--scratch", quality.REGARDANT])
    (kept,) = json.loads((tmp_path / "quality.json").read_text())["systems"]
    assert kept["points"] == [{"minutes": 5, "bleu": 20.0}]


def test_a_missed_bar_ends_with_an_error_after_all_are_measured(measured, monkeypatch):
    quality.main(["--scratch"])
    measured.clear()
    monkeypatch.setitem(quality.SYSTEMS, quality.REGARDANT, lambda minutes: iter([points(*[8.0] * 4)]))
    with pytest.raises(SystemExit, match="MISSED: 9 of 9 bars"):
        quality.main(["--scratch"])
    assert measured == [quality.JOEYNMT, quality.TRAINER]
