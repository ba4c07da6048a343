"""How measured speeds become ratios, shares of the peak and bars."""

import copy

import pytest

from benchmarks import training
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


def test_ratios_and_shares_of_the_peak_are_in_the_row_s_own_precision(measured):
    rows = {(row["name"], row["precision"]): row for row in measured["as it comes"]["rows"]}
    assert rows[MARIAN, "float32"]["regardant_is_times_as_fast"] == 1.25
    assert rows[MARIAN, "bfloat16"]["regardant_is_times_as_fast"] == 1.6
    assert rows[OURS, "bfloat16"]["regardant_is_times_as_fast"] == 1.0
    assert rows[MARIAN, "float32"]["best_of_each"] == rows[MARIAN, "bfloat16"]["best_of_each"] == 1.6
    assert rows[JOEYS_TRAINER, "float32"]["best_of_each"] == 6.0
    assert rows[OURS, "bfloat16"]["gflops"] == 240.0
    assert rows[OURS, "bfloat16"]["share_of_peak"] == 0.6
    assert rows[OURS, "float32"]["share_of_peak"] == 0.625


def test_every_bar_has_the_ratio_of_the_precision_it_names(measured):
    found = [(one["bar"], one["value"], one["limit"], one["pass"]) for one in bars(measured)]
    assert found == [
        ("bfloat16: times transformers Marian", 1.6, 1.85, False),
        ("bfloat16: times the fastest peer", 1.412, 1.35, True),
        ("float32: times transformers Marian", 1.25, 2.3, False),
        ("float32: times JoeyNMT's own trainer on its own batches", 3.125, 5.0, False),
        ("bfloat16: times the fastest peer, same allocator settings", 1.412, 1.3, True),
        ("bfloat16: times transformers Marian", 1.6, 2.1, False),
        ("bfloat16: share of the matmul peak", 0.6, 0.58, True),
    ]


def test_a_fast_bfloat16_meets_no_bar_of_float32(measured):
    slower(measured, OURS, "bfloat16", 0.01)
    assert [one["bar"] for one in bars(measured) if not one["pass"]] == [
        "float32: times transformers Marian",
        "float32: times JoeyNMT's own trainer on its own batches",
    ]


def test_when_we_are_slower_every_bar_is_missed(measured):
    slower(measured, OURS, "bfloat16", 2)
    slower(measured, OURS, "float32", 2)
    measured["as it comes"]["rows"][1]["share_of_peak"] = 0.3
    assert not any(one["pass"] for one in bars(measured))


def test_bars_of_a_precision_that_the_processor_lacks_are_not_measured(measured):
    for each in measured.values():
        each["rows"] = [row for row in each["rows"] if row["precision"] == "float32"]
        complete(each, 50.0)
    assert {name: one["pass"] for name, one in by_name(measured).items()} == {
        "bfloat16: times transformers Marian": None,
        "bfloat16: times the fastest peer": None,
        "float32: times transformers Marian": False,
        "float32: times JoeyNMT's own trainer on its own batches": False,
        "bfloat16: times the fastest peer, same allocator settings": None,
        "bfloat16: share of the matmul peak": None,
    }


@pytest.mark.parametrize(("here", "started"), [(("float32",), [OURS]), (("float32", "bfloat16"), [OURS, OURS])])
def test_programs_start_for_the_precisions_of_the_processor(monkeypatch, tmp_path, here, started):
    ours, asked = [one for one in CONTENDERS if one.name == OURS], []

    class Answering:
        def __init__(self, program, arguments, **settings):
            self.name = program
            self.about = {"parameters": 1, "threads": 1, "versions": {"torch": "2.13.0"}}

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            pass

        def ask(self, **request):
            asked.append((self.name, request))
            rates = dict.fromkeys(request.get("precisions", ()), 1.0)
            return {"seconds": 1.0, "tokens": 1, "system_seconds": 0.0, **rates}

    monkeypatch.setattr(training, "Peer", Answering)
    monkeypatch.setattr(training, "precisions", lambda: here)
    found = training.measure({}, tmp_path / "batches.json", 1, ours)
    assert [row["name"] for row in found["rows"]] == started
    assert set(found["peak_gflops"]) == set(here)
    assert {request["precision"] for name, request in asked if "precision" in request} == set(here)


def test_the_fastest_peer_is_never_ourselves(measured):
    slower(measured, "torch.nn.Transformer", "bfloat16", 10)
    assert by_name(measured)["bfloat16: times the fastest peer"]["value"] == 1.6


def test_the_table_has_a_line_for_every_row_and_every_bar(measured):
    result = {
        "allocators": measured,
        "bars": list(bars(measured)),
        "versions": {"torch": "2.13.0"},
    }
    lines = list(table(result))
    assert sum(line.startswith(MARIAN) for line in lines) == 4
    assert sum(line.startswith(("pass", "MISSED")) for line in lines) == 7
    assert "torch 2.13.0" in lines


def test_every_contender_has_its_program_and_its_requirements():
    for one in CONTENDERS:
        assert (PROGRAMS / f"{one.program}.py").is_file()
        assert one.library is None or (PROGRAMS / f"{one.library}.txt").is_file()
