"""Which sentences are decoded together, and how speeds become ratios and bars of equal precision."""

from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from benchmarks import decoding
from benchmarks.decoding import (
    ALONE,
    AUTOCAST,
    BEAM,
    CASES,
    COMPUTE_TYPES,
    CTRANSLATE2,
    EXPORTED,
    GREEDY,
    REGARDANT,
    TRANSFORMERS,
    as_dicts,
    bars,
    batches,
    few,
    identical_share,
    request,
    start,
    table,
)
from benchmarks.workers import Row, fastest

LENGTHS = [3, 9, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5] * 10


def test_every_sentence_of_a_case_is_in_one_batch_beside_those_of_like_length():
    planned = batches(LENGTHS, BEAM)
    assert sorted(index for batch in planned for index in batch) == list(range(120))
    assert [len(batch) for batch in planned] == [32, 32, 32, 24]
    in_order = [LENGTHS[index] for batch in planned for index in batch]
    assert in_order == sorted(LENGTHS, reverse=True)


def test_one_sentence_in_four_is_translated_alone():
    planned = batches(LENGTHS, ALONE)
    assert sorted(planned) == [[index] for index in range(0, 120, 4)]


def test_only_batches_of_several_sentences_are_given_at_once():
    planned = batches(LENGTHS, GREEDY)
    assert len(request(GREEDY, planned, at_once=True)["batches"]) == 1
    assert request(GREEDY, planned)["batches"] == planned
    alone = batches(LENGTHS, ALONE)
    assert request(ALONE, alone, at_once=True)["batches"] == alone


def test_the_identical_share_is_that_of_sentences_that_are_the_same():
    def row(targets):
        return SimpleNamespace(readings=[{"targets": targets}])

    ours = row({"0": [5, 6], "1": [7], "2": [8], "3": []})
    assert identical_share(row({"0": [5, 6], "1": [7, 7], "2": [8], "3": []}), ours) == 0.75


def test_every_engine_gets_the_sentences_in_the_same_order():
    planned = batches(LENGTHS, BEAM)
    together, apart = request(BEAM, planned, at_once=True), request(BEAM, planned)
    (whole,) = together["batches"]
    assert whole == [index for batch in apart["batches"] for index in batch]


class Probed:
    """An engine that takes a second for each batch of 32 that it cannot translate beside others."""

    def __init__(self, at_once):
        self.at_once, self.asked = at_once, []

    def ask(self, batches, batch_size, **options):
        (together,) = batches
        self.asked.append(together)
        count = -(-len(together) // batch_size)
        return {"tokens": 9 * len(together), "seconds": -(-count // self.at_once)}


@pytest.mark.parametrize(("sentences", "probed"), [(120, 4), (143, 5), (32 * 7, 7), (1000, 4), (32 * 80, 10)])
def test_threads_are_chosen_on_several_batches_where_there_are_several(monkeypatch, sentences, probed):
    monkeypatch.setattr("benchmarks.workers.SETTLE", 0.0)
    one, two = (Row(f"{count} at once", Probed(count), {}) for count in (1, 2))
    asked = request(BEAM, few(batches([5] * sentences, BEAM)), at_once=True)
    best, speeds = fastest([one, two], {**asked, "batches": [[0]]}, asked)
    assert best is two and speeds["2 at once"] > speeds["1 at once"]
    assert -(-len(best.peer.asked[-1]) // BEAM.batch_size) == probed


SPEEDS = {
    (REGARDANT, "float32"): 100.0,
    (TRANSFORMERS, "float32"): 20.0,
    (REGARDANT, "bfloat16"): 200.0,
    (TRANSFORMERS, "bfloat16"): 30.0,
    (AUTOCAST, "bfloat16"): 40.0,
    (EXPORTED, "float32"): 95.0,
    (CTRANSLATE2, "float32"): 100.0,
    (EXPORTED, "int8"): 380.0,
    (CTRANSLATE2, "int8"): 400.0,
}


@pytest.fixture
def cases():
    """Rows by case: every bar is met, the one beside CTranslate2 just so."""
    row = {"output_tokens": 1000}
    return {case.name: {key: row | {"sentences_per_second": speed} for key, speed in SPEEDS.items()} for case in CASES}


BLEU = {"regardant, float32": 30.0, "regardant, bfloat16": 30.0, "uncached": 30.05}


def missed(cases, bleu=BLEU):
    return [one["bar"] for one in bars(cases, bleu) if one["pass"] is False and not one.get("goal")]


def missed_goals(cases):
    return {one["bar"] for one in bars(cases, BLEU) if one["pass"] is False and one.get("goal")}


def test_all_bars_hold_where_we_are_fast_and_right(cases):
    assert missed(cases) == []


@pytest.mark.parametrize(
    ("case", "engine", "precision", "speed", "bar"),
    [
        (BEAM, TRANSFORMERS, "float32", 100 / 3.49, "beam 5, batch 32, float32: times transformers"),
        (GREEDY, TRANSFORMERS, "float32", 100 / 3.19, "greedy, batch 32, float32: times transformers"),
        (ALONE, TRANSFORMERS, "float32", 100 / 1.99, "beam 5, batch 1, float32: times transformers"),
        (BEAM, REGARDANT, "float32", 84.9, "beam 5, batch 32, float32: times CTranslate2 at its best threads"),
        (GREEDY, EXPORTED, "int8", 359.0, "greedy, batch 32, int8: exported, times CTranslate2"),
        (GREEDY, EXPORTED, "float32", 89.0, "greedy, batch 32, float32: exported, times CTranslate2"),
    ],
)
def test_each_bar_is_missed_by_its_own_case_and_precision_alone(cases, case, engine, precision, speed, bar):
    cases[case.name][engine, precision]["sentences_per_second"] = speed
    assert missed(cases) == [bar]


@pytest.mark.parametrize(
    ("case", "engine", "speed"),
    [(BEAM, TRANSFORMERS, 200 / 3.49), (GREEDY, AUTOCAST, 200 / 3.99), (ALONE, TRANSFORMERS, 200 / 2.99)],
)
def test_a_goal_in_bfloat16_is_held_to_the_fastest_peer_in_it(cases, case, engine, speed):
    before = missed_goals(cases)
    cases[case.name][engine, "bfloat16"]["sentences_per_second"] = speed
    assert missed_goals(cases) - before == {f"{case.name}, bfloat16: times transformers"}
    assert missed(cases) == []


def test_a_fast_bfloat16_meets_no_bar_of_float32(cases):
    for rows in cases.values():
        rows[REGARDANT, "float32"]["sentences_per_second"] = 10.0
        rows[REGARDANT, "bfloat16"]["sentences_per_second"] = 10_000.0
    assert missed(cases) == [
        *(f"{case.name}, float32: times transformers" for case in (BEAM, GREEDY, ALONE)),
        "beam 5, batch 32, float32: times CTranslate2 at its best threads",
    ]


def test_without_peers_in_bfloat16_its_bars_are_not_measured(cases):
    for rows in cases.values():
        del rows[TRANSFORMERS, "bfloat16"], rows[AUTOCAST, "bfloat16"]
    unknown = [one["bar"] for one in bars(cases, BLEU) if one["pass"] is None]
    assert len(unknown) == 3 and all("bfloat16: times transformers" in name for name in unknown)
    assert missed(cases) == []


def test_without_one_of_two_peers_no_goal_is_judged_against_the_other(cases):
    for rows in cases.values():
        del rows[TRANSFORMERS, "bfloat16"]
    judged = {one["bar"]: one["pass"] for one in bars(cases, BLEU, ["transformers, bfloat16"])}
    of_peers = {name: met for name, met in judged.items() if name.endswith(": times transformers")}
    assert {name for name, met in of_peers.items() if met is None} == {name for name in of_peers if "bfloat16" in name}
    assert len(of_peers) == 6


def test_shorter_output_is_no_speed(cases):
    cases[GREEDY.name][REGARDANT, "float32"]["output_tokens"] = 970
    assert missed(cases) == ["greedy, batch 32: difference in output tokens"]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("off", [29.9, 30.2])
def test_bleu_may_not_differ_to_either_side(cases, precision, off):
    bleu = BLEU | {f"regardant, {precision}": off}
    assert missed(cases, bleu) == [f"{precision}: difference in BLEU from uncached search"]


class Answering:
    """A peer that answers every request at once, and counts those of each stopping rule."""

    def __init__(self):
        self.stopping = []

    def ask(self, batches, **options):
        self.stopping.append(options.get("stopping"))
        targets = {str(index): [5] for batch in batches for index in batch}
        return {"tokens": len(targets), "sentences": len(targets), "seconds": 1.0, "targets": targets}


@pytest.mark.parametrize(("case", "tried"), [(BEAM, {"default", "early"}), (GREEDY, {None})])
def test_stopping_rules_of_transformers_are_tried_where_there_are_beams(monkeypatch, case, tried):
    monkeypatch.setattr("benchmarks.workers.SETTLE", 0.0)
    peers = {f"{engine}, float32": Answering() for engine in (REGARDANT, TRANSFORMERS)}
    found = decoding.measure(case, peers, LENGTHS, 1)
    assert set(peers[f"{TRANSFORMERS}, float32"].stopping) == tried
    assert len(found["probe_tokens_per_second"]) == 4 * len(tried)


def timed(name, speed):
    reading = {"sentences": speed, "seconds": 1.0, "tokens": 13 * speed, "targets": {"0": [5]}}
    return Row(name, None, {}, [reading])


def test_every_row_names_its_precision_and_is_compared_in_it():
    speeds = {
        "regardant, float32": 100,
        "transformers, float32": 50,
        "regardant, bfloat16": 300,
        "transformers autocast, bfloat16": 60,
        "CTranslate2, float32, 2 x 1 threads": 200,
        "CTranslate2, int8, 1 x 2 threads": 600,
    }
    rows = as_dicts([timed(name, speed) for name, speed in speeds.items()])
    assert [(row["precision"], row["regardant_is_times_as_fast"]) for row in rows] == [
        ("float32", 1.0),
        ("float32", 2.0),
        ("bfloat16", 1.0),
        ("bfloat16", 5.0),
        ("float32", 0.5),
        ("int8", None),
    ]
    assert [row["best_of_each"] for row in rows] == [1.0, 6.0, 1.0, 5.0, 0.5, 0.5]
    assert [row.get("setting") for row in rows[-2:]] == ["2 x 1 threads", "1 x 2 threads"]
    result = {
        "cases": [{"case": BEAM.name, "rows": rows}],
        "bleu": BLEU,
        "left_out": {"transformers, bfloat16": "no kernel"},
        "bars": [],
        "versions": {},
    }
    lines = list(table(result))
    assert all(any(line.startswith(name) for line in lines) for name in speeds)
    assert "left out: transformers, bfloat16 (no kernel)" in lines


class Started:
    """A peer that runs, unless it is transformers with weights in bfloat16."""

    def __init__(self, program, arguments, **settings):
        if program == "marian_decoding" and arguments[2] == "bfloat16":
            raise SystemExit("a line of the log\nno kernel for it")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


def test_a_precision_that_a_peer_cannot_compute_in_is_left_out_with_its_reason(monkeypatch):
    monkeypatch.setattr(decoding, "Peer", Started)
    monkeypatch.setattr(decoding, "precisions", lambda: ("float32", "bfloat16"))
    with ExitStack() as stack:
        peers, left_out = start(stack, "sentences.json")
    assert left_out == {"transformers, bfloat16": "no kernel for it"}
    assert {"regardant, float32", "regardant, bfloat16", "transformers, float32"} < set(peers)
    assert "transformers autocast, bfloat16" in peers and "transformers, bfloat16" not in peers
    assert all(f"regardant exported, {one}" in peers for one in COMPUTE_TYPES)
