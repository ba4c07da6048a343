"""docs/experiments.md agrees with the kept results, and has a place for every experiment."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.bars import verdict
from benchmarks.experiments.__main__ import EXPERIMENTS
from benchmarks.ladder import ENCODERS
from benchmarks.records import RESULTS
from regardant import config
from regardant.pictures import alone

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "experiments.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
SECTIONS = [section for section in PAGE.split("\n## ") if "](experiments/" in section]
MEASURED = {path.stem for path in (RESULTS / "experiments").glob("*.json")}
KEPT = {path.stem for path in (RESULTS / "ladder").glob("*.json")} - {"comparison"}
COMPARISON = json.loads((RESULTS / "ladder" / "comparison.json").read_text(encoding="utf-8"))
WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def test_every_rung_is_measured_on_one_machine_and_in_the_table():
    rungs = {name.removeprefix("ladder/") for name in config.recipes() if name.startswith("ladder/")}
    assert rungs | {f"{rung}-2000-updates" for rung in ("transformer", *ENCODERS)} == KEPT
    minutes = COMPARISON["equal_minutes"]
    assert minutes.keys() == rungs and len({json.dumps(run["machine"]) for run in minutes.values()}) == 1
    assert f"the {len(rungs)} recipes `ladder/*`" in TEXT
    rows = [
        f"| `{rung}` | {run['bleu']:.1f} | {run['interval'][0]:.1f} to {run['interval'][1]:.1f} "
        f"| {run['validations'][-1]['loss']:.2f} | {run['updates']:,} | {run['median_tokens_per_second'] / 1000:.1f} |"
        for rung, run in sorted(minutes.items(), key=lambda one: -one[1]["bleu"])
    ]
    assert "\n".join(rows) in PAGE


def test_the_bars_of_the_ladder_pass():
    bars = COMPARISON["bars"]
    assert {verdict(one) for one in bars} == {"pass"}
    assert f"All {WORDS[len(bars)]} bars of the comparison pass" in TEXT


def test_scores_are_those_measured():
    minutes, updates = COMPARISON["equal_minutes"], COMPARISON["equal_updates"]
    bleu = {rung: f"{run['bleu']:.1f}" for rung, run in minutes.items()}
    assert (
        f"reaches {bleu['gru-fixed']} BLEU, a decoder with Bahdanau's attention {bleu['gru-bahdanau']}, and a "
        f"Transformer {bleu['transformer']}"
    ) in TEXT
    fixed, attending = (minutes[rung]["by_length"] for rung in ("gru-fixed", "gru-bahdanau"))
    assert f"({fixed[0]['bleu']:.1f} to {fixed[-1]['bleu']:.1f})" in TEXT
    assert f"({attending[0]['bleu']:.1f} to {attending[-1]['bleu']:.1f})" in TEXT
    gain = minutes["gru-bahdanau"]["against_first"]["difference"]
    longest = attending[-1]["bleu"] - fixed[-1]["bleu"]
    assert f"gains {gain:.1f} points on all and {longest:.1f} on the longest quarter" in TEXT
    equal = {rung: f"{run['bleu']:.1f}" for rung, run in updates.items()}
    assert f"a Transformer reaches {equal['transformer']} BLEU" in TEXT
    assert f"{equal['window']} with an encoder that attends to 8 neighbours" in TEXT
    assert f"random features {equal['performer']}, with linear attention {equal['linear']}" in TEXT


def test_losses_and_speeds_are_those_measured():
    minutes = COMPARISON["equal_minutes"]
    losses = [
        f"{minutes[rung]['validations'][-1]['loss']:.2f}" for rung in ("transformer", "gru-bahdanau", "gru-fixed")
    ]
    assert (
        f"validation loss is {losses[0]} nats a token, that of Bahdanau's model {losses[1]} and that of one fixed "
        f"context {losses[2]}"
    ) in TEXT
    rungs = ("gru-fixed", "gru-bahdanau", "transformer")
    without, bahdanau, transformer = (f"{minutes[one]['median_tokens_per_second'] / 1000:.1f}" for one in rungs)
    assert (
        f"tokens a second: {transformer} thousand, against {without} thousand without attention and "
        f"{bahdanau} thousand with Bahdanau's"
    ) in TEXT


def test_every_experiment_is_measured():
    assert EXPERIMENTS.keys() == MEASURED


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_a_measured_experiment_has_the_figure_of_its_result(name):
    (section,) = [one for one in SECTIONS if f"](experiments/{name}.svg)" in one]
    assert f"`{name}`" in section
    kept = json.loads((RESULTS / "experiments" / f"{name}.json").read_text(encoding="utf-8"))
    _, chart = EXPERIMENTS[name]
    assert (DOCS / "experiments" / f"{name}.svg").read_text(encoding="utf-8") == alone(chart(kept))


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.partition("\n")[0])
def test_a_measured_experiment_says_whether_the_lectures_are_right(section):
    verdict = r"The lectures are (right|partly right|wrong)\b|the lectures' claim is undecided by this measurement\b"
    assert re.search(verdict, " ".join(section.split()))
