from benchmarks.bars import MISSED, PASS, verdict
from benchmarks.processes import bars


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
