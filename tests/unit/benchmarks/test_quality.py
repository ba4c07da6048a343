"""Bars of quality by time, and what is kept of a system that is measured alone."""

import json

import pytest

from benchmarks import quality
from benchmarks.records import Measurement


def points(*scores):
    return [{"minutes": minutes, "bleu": score} for minutes, score in zip(quality.MINUTES, scores, strict=True)]


def test_each_time_is_held_to_the_best_of_the_others():
    systems = {
        quality.REGARDANT: points(20.0, 33.0, 38.0, 41.0),
        quality.JOEYNMT: points(5.0, 20.0, 33.0, 38.0),
        quality.TRAINER: points(21.0, 30.0, 34.0, 36.0),
    }
    values = [one["value"] for one in quality.bars(systems)]
    assert values == pytest.approx([-1.0, 3.0, 4.0, 3.0])
    assert [one["pass"] for one in quality.bars(systems)] == [False, True, True, True]


def test_a_system_alone_is_kept_without_a_verdict(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.records.SCRATCH", tmp_path)
    quality.keep({quality.JOEYNMT: points(1.0, 2.0, 3.0, 4.0)}, Measurement(scratch=True))
    kept = json.loads((tmp_path / "quality.json").read_text())
    assert kept["systems"][quality.JOEYNMT][3]["bleu"] == 4.0
    assert "bars" not in kept and "pass" not in kept
