"""What is made of the speeds that were measured."""

import copy

import pytest

from benchmarks.training import CONTENDERS, JOEYS_TRAINER, MARIAN, OURS, bars, complete, table
from benchmarks.workers import PROGRAMS

SPEEDS = {
    (OURS, "float32"): 2500.0,
    (OURS, "bfloat16"): 4800.0,
    (MARIAN, "float32"): 2000.0,
    (MARIAN, "bfloat16"): 3000.0,
    ("torch.nn.Transformer", "bfloat16"): 3400.0,
    (JOEYS_TRAINER, "float32"): 800.0,
}


@pytest.fixture
def measured():
    one = {
        "rows": [
            {"name": name, "precision": precision, "tokens_per_second": speed, "kernel_share": 0.1}
            for (name, precision), speed in SPEEDS.items()
        ],
        "peak_gflops": {"float32": 200.0, "bfloat16": 400.0},
    }
    both = {"as it comes": one, "same allocator settings": copy.deepcopy(one)}
    for each in both.values():
        complete(each, 50.0)
    return both


def by_name(measured):
    return {one["bar"]: one for one in bars(measured)}


def slower(measured, name, precision, factor):
    for each in measured.values():
        for row in each["rows"]:
            if (row["name"], row["precision"]) == (name, precision):
                row["tokens_per_second"] /= factor


def test_ratios_are_of_our_faster_precision_and_shares_of_the_peak_in_the_row_s_own(measured):
    rows = {(row["name"], row["precision"]): row for row in measured["as it comes"]["rows"]}
    assert rows[MARIAN, "float32"]["ours_is_times_as_fast"] == 2.4
    assert rows[OURS, "bfloat16"]["ours_is_times_as_fast"] == 1.0
    assert rows[OURS, "bfloat16"]["gflops"] == 240.0
    assert rows[OURS, "bfloat16"]["share_of_peak"] == 0.6
    assert rows[OURS, "float32"]["share_of_peak"] == 0.625


def test_every_promise_is_a_bar_with_the_ratio_it_names(measured):
    found = by_name(measured)
    assert {name: one["value"] for name, one in found.items()} == {
        "times transformers Marian in bfloat16, as it comes": 1.6,
        "times the fastest peer, as it comes": 1.412,
        "times transformers Marian in float32, as it comes": 2.4,
        "times JoeyNMT's own trainer on its own batches": 6.0,
        "times the fastest peer, same allocator settings": 1.412,
        "times transformers Marian in bfloat16": 1.6,
        "of the bfloat16 matmul peak": 0.6,
    }
    assert [name for name, one in found.items() if not one["pass"]] == ["times transformers Marian in bfloat16"]


def test_when_we_are_slower_every_bar_is_missed(measured):
    slower(measured, OURS, "bfloat16", 2)
    slower(measured, OURS, "float32", 2)
    measured["as it comes"]["rows"][1]["share_of_peak"] = 0.3
    assert not any(one["pass"] for one in bars(measured))


def test_the_fastest_peer_is_never_ourselves(measured):
    slower(measured, "torch.nn.Transformer", "bfloat16", 10)
    assert by_name(measured)["times the fastest peer, as it comes"]["value"] == 1.6


def test_the_table_has_a_line_for_every_row_and_every_bar(measured):
    result = {
        "allocators": measured,
        "bars": list(bars(measured)),
        "versions": {"torch": "2.13.0"},
        "machine": {"cpu": "some"},
    }
    lines = list(table(result))
    assert sum(line.startswith(MARIAN) for line in lines) == 4
    assert sum(line.startswith(("pass", "FAIL", "met", "not met")) for line in lines) == 7
    assert "torch 2.13.0" in lines


def test_every_contender_has_its_program_and_its_requirements():
    for one in CONTENDERS:
        assert (PROGRAMS / f"{one.program}.py").is_file()
        assert one.library is None or (PROGRAMS / f"{one.library}.txt").is_file()
