"""Which sentences are translated together, and what is made of the speeds."""

from types import SimpleNamespace

import pytest

from benchmarks.decoding import (
    ALONE,
    BEAM,
    CASES,
    CTRANSLATE2,
    EXPORTED,
    GREEDY,
    OURS,
    OURS_ROUNDED,
    TRANSFORMERS,
    agreement,
    bars,
    batches,
    request,
)

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


def test_agreement_is_the_share_of_sentences_that_are_the_same():
    def row(targets):
        return SimpleNamespace(readings=[{"targets": targets}])

    ours = row({"0": [5, 6], "1": [7], "2": [8], "3": []})
    assert agreement(row({"0": [5, 6], "1": [7, 7], "2": [8], "3": []}), ours) == 0.75


@pytest.fixture
def rows():
    one = {"ours_is_times_as_fast": 5.0, "output_tokens": 1000}
    types = ("float32", "int8")
    engines = (OURS, TRANSFORMERS, *(f"{name}{one}" for name in (f"{CTRANSLATE2} ", f"{EXPORTED}-") for one in types))
    return {case.name: {engine: dict(one) for engine in engines} for case in CASES}


BLEU = {OURS: 30.0, "read anew": 30.05}


def missed(rows, bleu=BLEU):
    return [one["bar"] for one in bars(rows, bleu) if not one["pass"] and not one.get("goal")]


def test_all_bars_hold_where_we_are_fast_and_right(rows):
    assert missed(rows) == []


@pytest.mark.parametrize(
    ("case", "engine", "just_missed", "bar"),
    [
        (BEAM, TRANSFORMERS, 3.49, "beam 5, batch 32: times transformers"),
        (GREEDY, TRANSFORMERS, 3.99, "greedy, batch 32: times transformers"),
        (ALONE, TRANSFORMERS, 1.99, "beam 5, batch 1: times transformers"),
        (GREEDY, f"{EXPORTED}-int8", 5.6, "greedy, batch 32: exported, times CTranslate2 int8"),
    ],
)
def test_each_bar_is_missed_by_its_own_case_alone(rows, case, engine, just_missed, bar):
    rows[case.name][engine]["ours_is_times_as_fast"] = just_missed
    assert missed(rows) == [bar]


def test_shorter_output_is_no_speed(rows):
    rows[GREEDY.name][OURS]["output_tokens"] = 970
    assert missed(rows) == ["greedy, batch 32: output tokens apart"]


def test_bleu_may_not_be_off_to_either_side(rows):
    for off in (29.9, 30.2):
        assert missed(rows, BLEU | {OURS: off}) == [f"BLEU of {OURS} off from reading every prefix anew"]
        rounded = [f"BLEU of {OURS_ROUNDED} off from reading every prefix anew"]
        assert missed(rows, BLEU | {OURS_ROUNDED: off}) == rounded


def test_the_faster_precision_is_held_to_the_bars(rows):
    name = f"{CTRANSLATE2} float32"
    for engine in (name, f"{EXPORTED}-float32"):
        rows[BEAM.name][engine]["ours_is_times_as_fast"] = 0.8
    assert missed(rows) == ["beam 5, batch 32: times CTranslate2 float32 at its best threads"]
    for case in CASES:
        rows[case.name][OURS_ROUNDED] = {"ours_is_times_as_fast": 0.75, "output_tokens": 1000}
    assert missed(rows) == []
    rows[BEAM.name][OURS_ROUNDED]["ours_is_times_as_fast"] = 1.3
    assert missed(rows) == ["beam 5, batch 32: times CTranslate2 float32 at its best threads"]
