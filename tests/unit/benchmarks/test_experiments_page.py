"""docs/experiments.md agrees with the kept results, and has a place for every experiment."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.bars import verdict
from benchmarks.experiments.__main__ import EXPERIMENTS
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


def listed(pattern):
    (found,) = re.findall(pattern, TEXT)
    return set(re.findall(r"`([\w-]+)`", found))


def test_the_page_lists_the_rungs_with_results_and_no_others():
    by_minutes = listed(r"rungs of ten minutes: ([^;]+);")
    by_updates = listed(r"rungs of 2,000 updates: ([^.]+)\.")
    assert by_minutes | {f"{rung}-2000-updates" for rung in by_updates} == KEPT
    rungs = [name for name in config.recipes() if name.startswith("ladder/")]
    assert f"Of the {len(rungs)} rungs, {WORDS[len(KEPT)]} runs have a result" in TEXT
    assert f"- {WORDS[len(by_minutes)]} rungs of ten minutes" in TEXT
    assert f"- {WORDS[len(by_updates)]} rungs of 2,000 updates" in TEXT


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
    speeds = [f"{run['median_tokens_per_second'] / 1000:.1f}" for run in minutes.values()]
    without, bahdanau, transformer = speeds
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
