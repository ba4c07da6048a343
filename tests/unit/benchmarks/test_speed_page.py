"""docs/speed.md says what the results say."""

import json
import re
from pathlib import Path

from benchmarks.records import RESULTS

PAGE = (Path(__file__).parents[3] / "docs" / "speed.md").read_text(encoding="utf-8")


def kept(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def test_training_speeds_are_those_measured():
    told = re.findall(r"^\| ([^|]+) \| (float32|bfloat16) \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    as_it_comes, alike = (one["rows"] for one in kept("training_speed")["allocators"].values())
    assert told == [
        (
            one["name"],
            one["precision"],
            f"{one['tokens_per_second']:,.0f}",
            f"{one['ours_is_times_as_fast']:.2f}",
            f"{other['ours_is_times_as_fast']:.2f}",
        )
        for one, other in zip(as_it_comes, alike, strict=True)
    ]


def test_shares_of_the_peak_are_those_measured():
    measured = kept("training_speed")["allocators"]["as it comes"]
    shares = {row["precision"]: row["share_of_peak"] for row in measured["rows"] if row["name"] == "regardant"}
    text = " ".join(PAGE.split())
    peaks = {precision: f"{peak:,.0f}" for precision, peak in measured["peak_gflops"].items()}
    assert f"in bfloat16 ({peaks['bfloat16']} GFLOP/s) that is {shares['bfloat16']:.0%}".replace("%", " %") in text
    assert f"in float32 it is {shares['float32']:.0%} of {peaks['float32']}".replace("%", " %") in text


def test_shares_of_a_step_are_those_measured():
    shares = kept("training_profile")["profiles"]["bfloat16"]["shares"]
    told = {part: f"{shares[part]:.0%}".replace("%", " %") for part in ("matmul", "loss", "attention", "dropout")}
    assert (
        f"layers take {told['matmul']} of a step in bfloat16, the loss with its own {told['loss']}, "
        f"attention {told['attention']}, dropout {told['dropout']}"
    ) in " ".join(PAGE.split())


def test_starting_takes_what_was_measured():
    seconds = kept("startup")["seconds"]
    text = " ".join(PAGE.split())
    assert f"one sentence after {seconds['translate']:.2f} s" in text
    assert f"`import torch` takes {seconds['import torch']:.2f} s" in text
    assert f"`--help` takes {seconds['--help']:.2f} s" in text


def test_translating_speeds_are_those_measured():
    number = r" ([\d.,]+) \|"
    told = re.findall(rf"^\| ([^|]+) \|{number * 4}$", PAGE, re.MULTILINE)
    measured = [
        {row["engine"].split(",")[0]: row["sentences_per_second"] for row in case["rows"]}
        for case in kept("decoding_speed")["cases"]
    ]
    assert told == [(engine, *(f"{case[engine]:,.0f}" for case in measured)) for engine in measured[0]]


def test_bars_of_translating_are_those_measured():
    text = " ".join(PAGE.split())
    values = {one["bar"]: one["value"] for one in kept("decoding_speed")["bars"]}
    beam, greedy, alone = (
        values[f"{case}: times transformers"] for case in ("beam 5, batch 32", "greedy, batch 32", "beam 5, batch 1")
    )
    assert f"{beam:.1f} times as fast with five beams, {greedy:.1f} times greedily" in text
    assert f"{alone:.1f} times for one sentence at a time" in text
    beside = values["beam 5, batch 32: times CTranslate2 float32 at its best threads"]
    assert f"it is {beside:.2f} times as fast as CTranslate2 in float32" in text
    least = min(value for name, value in values.items() if "exported" in name)
    assert f"An export reaches at least {least:.2f} of what CTranslate2 used directly does" in text


def test_costs_of_attention_are_those_measured():
    digits = {
        "slope_of_time": 2,
        "slope_of_memory": 2,
        "times_faster_than_sdpa": 1,
        "times_the_memory_of_sdpa": 2,
        "error_on_random": 3,
        "error_on_trained": 3,
    }
    rows = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.count("|") == 8]
    measured = [
        [
            one["mechanism"] + ", causal" * one["causal"],
            *("–" if one.get(key) is None else f"{one[key]:.{number}f}" for key, number in digits.items()),
        ]
        for one in kept("attention")["mechanisms"]
    ]
    assert [row for row in rows if row[0] in {name for name, *_ in measured}] == measured


def test_tiny_shakespeare_takes_what_was_measured():
    told = re.findall(r"^\| ([^|]+) \| (\d+) \| ([\d.]+) \| ([\d,]+) \|$", PAGE, re.MULTILINE)
    assert told == [
        (name, f"{run['seconds']:.0f}", f"{run['loss']:.3f}", f"{run['tokens_per_second']:,.0f}")
        for name, run in kept("nanogpt")["means"].items()
    ]
    alone = kept("nanogpt")["float32_products_alone"]
    assert (
        f"at the {alone['peak_gflops']:.0f} GFLOP/s that large ones reach, would train on "
        f"{alone['tokens_per_second']:,.0f} tokens a second, {alone['times_nanogpt']:.2f} times as many as nanoGPT"
    ) in " ".join(PAGE.split())
