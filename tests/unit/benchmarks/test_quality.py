"""Bars of quality by time, and what is kept of a system that is measured alone."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from benchmarks import quality
from benchmarks.records import OF_MACHINE, RESULTS
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


def test_times_that_another_system_lacks_are_not_measured():
    systems = [
        system(quality.REGARDANT, 20.0, 33.0, 38.0, 41.0),
        system(quality.JOEYNMT, 5.0, 20.0, minutes=(5, 10)),
    ]
    judged = list(quality.bars(systems))
    assert [one["value"] for one in judged] == [38.0, 15.0, 13.0, None, None, None]
    assert judged[4]["bar"] == "BLEU after 40 minutes less that of JoeyNMT, A Processor"


def test_kept_bars_follow_from_kept_scores():
    kept = json.loads((RESULTS / "quality.json").read_text(encoding="utf-8"))
    assert list(quality.bars(kept["systems"])) == kept["bars"]


def test_our_points_have_updates_engine_and_precision(monkeypatch, tmp_path):
    commands = []
    monkeypatch.setattr(quality, "FOLDER", tmp_path)
    monkeypatch.setattr(quality.subprocess, "run", lambda command, check: commands.append(command))
    monkeypatch.setattr(quality, "json_of", lambda command: {"bleu": 39.996, "engine": command[-1]})
    monkeypatch.setattr(quality, "training_numbers", lambda run: {"updates": 7})
    record = SimpleNamespace(decided=SimpleNamespace(precision="bfloat16"))
    monkeypatch.setattr(quality, "load", lambda run: SimpleNamespace(record=record))
    *_, found = quality.regardant((20,))
    assert len(commands) == 1 and "training.max_minutes=20" in commands[0]
    told = {"updates": 7, "engine": "torch", "precision": "bfloat16"}
    assert found == {"points": [{"minutes": 20, "bleu": 39.996, **told}]}


def test_the_versions_of_a_peer_are_those_it_answers_with(monkeypatch, tmp_path):
    answers = {"about": {"versions": {"joeynmt": "2.3"}}, "ask": lambda minutes: {"targets": [], "updates": 3}}
    monkeypatch.setattr(quality, "Peer", lambda *given, **options: nullcontext(SimpleNamespace(**answers)))
    monkeypatch.setattr(quality, "write_text", lambda translated, settings: (tmp_path, lambda targets: 9.0))
    *_, found = quality.train_peer("joeynmt_quality", "joeynmt", {}, "val", (5,))
    assert found == {"points": [{"minutes": 5, "bleu": 9.0, "updates": 3}], "versions": {"joeynmt": "2.3"}}


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
            yield {"points": found, "versions": {"torch": "2"}}

    monkeypatch.setattr(quality, "train_peer", train_peer)
    *_, found = quality.SYSTEMS[quality.JOEYNMT](quality.MINUTES)
    choices = [(one, "val", (quality.CHOICE_MINUTES,)) for one in quality.CANDIDATES]
    assert asked == [*choices, (quality.CANDIDATES[2], "test2016", quality.MINUTES)]
    assert found["settings"] == quality.CANDIDATES[2]
    assert [one["bleu"] for one in found["candidates"]] == [20.0, 20.0, 30.0, 20.0]
    assert [one["bleu"] for one in found["points"]] == [30.0] * 4
    assert (found["versions"], found["precision"]) == ({"torch": "2"}, "float32")
    assert found["fixed_settings"] == quality.PEERS | quality.SHAPE


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


def test_an_interrupted_measurement_takes_the_place_of_no_whole_one(measured, tmp_path, monkeypatch):
    path = tmp_path / "quality.json"

    def kept():
        return {
            one["name"]: [point["bleu"] for point in one["points"]] for one in json.loads(path.read_text())["systems"]
        }

    def measuring(*scores):
        for number in range(1, len(scores) + 1):
            yield points(*scores[:number], minutes=quality.MINUTES[:number])
        if len(scores) < len(quality.MINUTES):
            raise KeyboardInterrupt

    quality.main(["--scratch"])
    for scores in ((51.0, 52.0), (51.0, 52.0, 53.0, 54.0)):
        monkeypatch.setitem(quality.SYSTEMS, quality.REGARDANT, lambda minutes, scores=scores: measuring(*scores))
        with pytest.raises(KeyboardInterrupt) if len(scores) < 4 else nullcontext():
            quality.main(["--scratch", quality.REGARDANT])
        assert kept()[quality.REGARDANT] == ([50.0] * 4 if len(scores) < 4 else [*scores])
    assert kept()[quality.JOEYNMT] == [49.0] * 4
    path.unlink()
    for scores in ((51.0, 52.0), (53.0,), (53.0, 54.0, 55.0)):  # no whole one to lose
        monkeypatch.setitem(quality.SYSTEMS, quality.REGARDANT, lambda minutes, scores=scores: measuring(*scores))
        with pytest.raises(KeyboardInterrupt):
            quality.main(["--scratch", quality.REGARDANT])
    assert kept() == {quality.REGARDANT: [53.0, 54.0, 55.0]}


def test_each_row_has_its_own_command(measured, tmp_path):
    quality.main(["--scratch", quality.JOEYNMT])
    (row,) = json.loads((tmp_path / "quality.json").read_text())["systems"]
    assert row["command"] == 'make bench-quality BENCH="JoeyNMT"'


def test_a_missed_bar_ends_with_an_error_after_all_are_measured(measured, monkeypatch):
    quality.main(["--scratch"])
    measured.clear()
    monkeypatch.setitem(quality.SYSTEMS, quality.REGARDANT, lambda minutes: iter([points(*[8.0] * 4)]))
    with pytest.raises(SystemExit, match="MISSED: 9 of 9 bars"):
        quality.main(["--scratch"])
    assert measured == [quality.JOEYNMT, quality.TRAINER]
