"""`make torture` in short: a few of its damages, kills and refusals, and what it makes of them."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random

import pytest

from benchmarks.bars import missed
from benchmarks.damage import FORMATS, edits, flips
from benchmarks.kills import killed
from benchmarks.refusals import refusals
from benchmarks.torture import DAMAGED, KILLED, damage, judged


@pytest.mark.slow
def test_damaged_files_are_refused_by_name_or_change_nothing(tmp_path):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:  # its memory is not that of other tests
        found = alone.submit(damage, "toy", tmp_path, 2, 4).result()
    assert {name.split("/")[0] for name in found} >= {"checkpoints", "engines", "evaluation", "data", "run.yaml"}
    assert [one["wrong"] for one in found.values() if one["wrong"]] == []
    assert all(sum(one["counts"].values()) == 6 for one in found.values())
    assert max(one["gigabytes"] for one in found.values()) < 1.5


@pytest.mark.slow
@pytest.mark.parametrize("model", ["toy", "two processes"])
def test_a_training_that_is_killed_ends_bit_equal(model, tmp_path):
    found = killed(model, tmp_path, 3)
    assert found["kills"] == 3 and found["bit_equal"]


@pytest.mark.slow
def test_what_cannot_be_written_is_one_line_and_nothing_is_lost(tmp_path):
    found = refusals(tmp_path)
    assert found["two trainings"] and set(found) == {"two trainings", "full disk", "read-only"}
    assert [(trial, one) for trial, ends in found.items() for one, ok in (ends or {}).items() if not ok] == []


@pytest.mark.parametrize(
    "name", ["a.npy", "a.arrow", "model.safetensors", "a.json", "run.yaml", "metrics.jsonl", "a.ids"]
)
def test_every_file_has_as_many_edits_as_are_asked_for(name, tmp_path):
    found = edits(tmp_path / name, Random(1), 50)
    assert len(found) == len({what for what, _ in found}) == 50
    assert {*FORMATS.get((tmp_path / name).suffix, {})} <= {what for what, _ in found}


def test_a_flip_changes_one_bit():
    content = bytes(range(100))
    for _, flip in flips(Random(1), 20):
        changed = flip(content)
        assert sum(one != other for one, other in zip(content, changed, strict=True)) == 1


def result(wrong=(), seconds=1.0, equal=True, refused=True):
    file = {"wrong": list(wrong), "seconds": seconds, "gigabytes": 1.0}
    kills = {"kills": 10, "bit_equal": equal}
    return {
        **{f"damage of {one}": {"run.yaml": file} for one in DAMAGED},
        **{f"kills of {one}": kills for one in KILLED},
        "refusals": {"two trainings": {"start": refused}, "full disk": {"half": True}, "read-only": {"empty": True}},
    }


def test_what_goes_wrong_misses_a_bar():
    assert missed(judged(result(), 10, 20.0)) == []
    assert missed(judged(result(wrong=["a flip: DIFFERENT"]), 10, 20.0))[0].startswith("damages that were neither")
    assert missed(judged(result(seconds=11), 10, 20.0)) == ["longest answer of a damaged run in s"]
    assert missed(judged(result(equal=False), 10, 20.0)) == ["killed trainings that did not end bit-equal"]
    assert missed(judged(result(refused=False), 10, 20.0)) == ["refusals that failed, two trainings"]
    assert missed(judged(result(), 11, 31.0)) == ["kills", "minutes of all trials"]


def test_a_trial_that_ran_is_judged_where_others_may_not_mount():
    found = result(refused=False)
    found["refusals"] |= {"full disk": None, "read-only": None}
    judgements = {one["bar"]: one["pass"] for one in judged(found, 10, 20.0) if one["bar"].startswith("refusals")}
    assert list(judgements.values()) == [False, None, None]
