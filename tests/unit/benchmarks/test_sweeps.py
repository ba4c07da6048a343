"""Sweeps of real recipes, by a small one."""

import json
from pathlib import Path
from statistics import mean

import pytest

from benchmarks import sweeps
from benchmarks.records import RESULTS

PAGE = " ".join((Path(__file__).parents[3] / "docs" / "using.md").read_text(encoding="utf-8").split())


def kept(name):
    return json.loads((RESULTS / "sweeps" / f"{name}.json").read_text(encoding="utf-8"))


def test_the_page_says_what_tuning_found():
    reverse, sst2 = kept("tune-reverse"), kept("tune-sst2")
    own, best = reverse["output"]["again"]
    assert reverse["output"]["beats"] and f"took {reverse['bars'][0]['value']:.1f} minutes: half" in PAGE
    assert f"took {sst2['bars'][0]['value']:.1f} minutes: {sst2['output']['verdict']}" in PAGE
    assert f"with another seed BLEU {best:.2f} against {own:.2f} in equal minutes" in PAGE


def test_the_page_says_how_losses_scale_with_size():
    found = kept("scale-shakespeare")
    law, points = found["output"]["law"], found["output"]["points"]
    sizes = sorted({point["x"] for point in points})
    smallest, largest = (
        mean(point["loss"] for point in points if point["x"] == size) for size in (sizes[0], sizes[-1])
    )
    low, high = law["interval"]
    assert low > 0 and found["bars"][0]["pass"]
    minutes, span = found["bars"][0]["value"], f"from {sizes[0]:,.0f} to {sizes[-1]:,.0f}"
    assert f"took {minutes:.1f} minutes on two cores: {span} par" in PAGE
    assert f"fall with size, from {smallest:.2f} to {largest:.2f} nats per character" in PAGE
    assert f"an exponent of {law['exponent']:.3f} (95% interval {low:.3f} to {high:.3f})" in PAGE
    assert f"R squared {law['r_squared']:.3f} (`make bench-sweeps`)" in PAGE
    assert f"The fit with a floor has it at {law['floor']:.2f}." in PAGE


@pytest.mark.parametrize(("minutes", "met"), [(19.96, True), (20.04, False)])
def test_a_sweep_that_takes_seconds_too_long_misses_its_bar(monkeypatch, minutes, met):
    clock = iter([0.0, 60 * minutes])
    monkeypatch.setattr(sweeps, "json_of", lambda command: {})
    monkeypatch.setattr(sweeps.time, "perf_counter", lambda: next(clock))
    (bar,) = sweeps.measure("tune-reverse")["bars"]
    assert (bar["limit"], bar["pass"]) == (20.0, met)


@pytest.mark.slow  # twelve trainings
def test_a_sweep_is_kept_with_its_command_and_its_time(monkeypatch, tmp_path):
    monkeypatch.setattr(sweeps, "RUNS", tmp_path)
    small = [f"model.{name}=16" for name in ("d_model", "d_ff")] + ["data.train_size=200", "data.max_length=4"]
    command = ["scale", "copy", "--by", "compute", *(word for one in small for word in ("--set", one))]
    monkeypatch.setattr(sweeps, "SWEEPS", {"scale-copy": (command, 0.1)})
    found = sweeps.measure("scale-copy")
    assert found["command"].startswith("regardant scale copy") and found["command"].endswith("--minutes 0.1")
    assert len(found["output"]["points"]) == 12 and 0 <= found["output"]["law"]["r_squared"] <= 1
    (bar,) = found["bars"]
    assert bar["value"] > 0 and bar["limit"] == 0.1
