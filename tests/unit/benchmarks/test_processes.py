import json
from pathlib import Path

from benchmarks.bars import MISSED, PASS, verdict
from benchmarks.processes import bars
from benchmarks.records import RESULTS

DECISIONS = Path(__file__).parents[3] / "docs" / "decisions"


def test_the_decision_on_processes_has_the_gains_that_were_measured():
    (decision,) = DECISIONS.glob("0012-*.md")
    gains = json.loads((RESULTS / "processes.json").read_text(encoding="utf-8"))["gain"]
    first, second, third = (f"{gain:.2f}" for gain in gains.values())
    told = " ".join(decision.read_text(encoding="utf-8").split())
    assert f"two processes made {first}, {second} and {third} times as many updates a second as one" in told
    assert f"with a d_model of {', '.join([*gains][:-1])} and {[*gains][-1]}" in told


def test_plans_are_held_to_what_was_measured():
    found = {
        "sum": {
            "memory_bytes": 100.0,
            "planned_memory_bytes": 119.0,
            "tokens_per_second": 100.0,
            "planned_tokens_per_second": 126.0,
        }
    }
    judged = list(bars(found))
    assert [verdict(one) for one in judged] == [PASS, MISSED]
    assert [one["bar"] for one in judged] == [
        "sum: relative error of the planned memory",
        "sum: relative error of the planned speed",
    ]
