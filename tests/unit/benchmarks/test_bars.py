import ast
import json
from pathlib import Path

import pytest

import benchmarks
from benchmarks.bars import bar, conclude, lines, markdown, missed, passed, rounded, shown, verdict
from benchmarks.records import RESULTS

PACKAGE = Path(benchmarks.__file__).parent
MET, LOW, UNKNOWN = (bar("speed", value, 2.0, at_least=True) for value in (2.0, 1.0, None))
GOAL = bar("dream", 1.0, 2.0, at_least=True, goal=True)


@pytest.mark.parametrize(
    ("value", "at_least", "kept"),
    [(1.5, True, True), (1.49, True, False), (1.5, False, True), (1.51, False, False), (None, True, None)],
)
def test_a_bar_is_met_on_its_own_side_of_the_limit_and_at_it(value, at_least, kept):
    assert bar("speed", value, 1.5, at_least=at_least)["pass"] is kept


@pytest.mark.parametrize(("value", "limit", "at_least"), [(40.996, 41.0, True), (20.0004, 20.0, False)])
def test_a_bar_is_judged_before_its_value_is_rounded(value, limit, at_least):
    judged = bar("score", value, limit, at_least=at_least)
    assert judged["pass"] is False
    assert bar("score", judged["value"], limit, at_least=at_least) == judged
    assert bar("score", 41.1234, 41.0, at_least=True)["value"] == 41.12


def test_a_page_shows_no_value_that_its_verdict_contradicts():
    missed, met = (list(markdown([bar("score", value, 41.0, at_least=True)]))[-1] for value in (40.996, 41.0234))
    assert missed == "| score | 40.996 | >= 41.0 | **MISSED** |" and met == "| score | 41 | >= 41.0 | pass |"


def test_verdicts_are_in_words_for_bars_and_goals_alike():
    assert [verdict(one) for one in (MET, LOW, UNKNOWN, GOAL)] == ["pass", "MISSED", "not measured", "MISSED"]
    _, low, unknown, goal = lines([MET, LOW, UNKNOWN, GOAL])
    assert low.split() == ["MISSED", "1", ">=", "2.0", "speed"]
    assert unknown.split() == ["not", "measured", "-", ">=", "2.0", "speed"]
    assert goal.split() == ["MISSED", "1", ">=", "2.0", "dream", "(goal)"]


def test_pages_show_what_is_missed_in_bold():
    assert list(markdown([MET, LOW, UNKNOWN, GOAL]))[2:] == [
        "| speed | 2 | >= 2.0 | pass |",
        "| speed | 1 | >= 2.0 | **MISSED** |",
        "| speed | - | >= 2.0 | not measured |",
        "| goal: dream | 1 | >= 2.0 | **MISSED** |",
    ]


@pytest.mark.parametrize(
    ("bars", "whole"),
    [([MET, GOAL], True), ([MET, UNKNOWN], None), ([MET, UNKNOWN, LOW], False), ([GOAL], None), ([], None)],
)
def test_a_result_passes_if_no_bar_is_missed_and_goals_do_not_count(bars, whole):
    assert passed(bars) is whole
    assert missed(bars) == (["speed"] if whole is False else [])


def test_a_missed_bar_ends_the_program_with_its_name_and_a_missed_goal_does_not():
    conclude([MET, UNKNOWN, GOAL])
    with pytest.raises(SystemExit, match="MISSED: 1 of 2 bars: speed") as ended:
        conclude([MET, LOW, GOAL])
    assert isinstance(ended.value.code, str)  # which Python prints, and exits with 1


def calls_of(path):
    """Names of the functions that a file calls, and of its own functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        one.func.id if isinstance(one.func, ast.Name) else getattr(one.func, "attr", "")
        for one in ast.walk(tree)
        if isinstance(one, ast.Call)
    }


WITH_BARS = [
    path.relative_to(PACKAGE).as_posix()
    for path in sorted(PACKAGE.rglob("*.py"))
    if ".peers" not in path.parts and "bar" in calls_of(path)
]


@pytest.mark.parametrize("name", WITH_BARS)
def test_every_benchmark_with_bars_exits_by_them(name):
    assert calls_of(PACKAGE / name) & {"conclude", "finish"}, f"{name} would exit with 0 where a bar is missed"


def test_the_benchmarks_with_bars_are_found():
    assert {"decoding.py", "ladder.py", "shakespeare.py", "attention/__main__.py"} <= set(WITH_BARS)


JUDGED = [path for path in sorted(RESULTS.rglob("*.json")) if "bars" in json.loads(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("path", JUDGED, ids=[path.stem for path in JUDGED])
def test_kept_results_are_judged_as_bars_are_today(path):
    result = json.loads(path.read_text(encoding="utf-8"))
    for one in result["bars"]:
        again = bar(one["bar"], one["value"], one["limit"], at_least=one["at_least"], goal=one.get("goal", False))
        assert one == again
    dirty = result["commit"].endswith("-dirty")
    if not result["bars"]:
        assert "pass" not in result
    else:
        assert result.get("pass", None if dirty else "absent") is (None if dirty else passed(result["bars"]))


def test_numbers_have_four_digits_in_files_and_three_before_people():
    assert (rounded(1234.567), rounded(0.00123456), rounded(None)) == (1235.0, 0.001235, None)
    assert (shown(1234.5), shown(99.96), shown(0.012345), shown(None)) == ("1,234", "100", "0.0123", "-")
