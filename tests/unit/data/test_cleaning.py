import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regardant.data.cleaning import CleaningConfig, CleaningReport, Dropped, Reason, clean
from regardant.data.text_files import Fault, PairRecord

LONG = "a sentence that is longer than fifty characters, surely"


def cleaned(records, **settings):
    report = CleaningReport()
    pairs = list(
        clean([PairRecord(line, *pair) for line, pair in enumerate(records, 1)], CleaningConfig(**settings), report)
    )
    return pairs, report


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        ((Fault.BAD_ENCODING, "x"), Reason.BAD_ENCODING),
        (("a", Fault.BAD_ENCODING), Reason.BAD_ENCODING),
        (("a", Fault.MISSING), Reason.MISSING),
        (("", "x"), Reason.EMPTY),
        (("a", " \t\u3000"), Reason.EMPTY),
        (("a" * 100_000, "x"), Reason.OVER_LONG),
        (("a", "x" * 2001), Reason.OVER_LONG),
        ((LONG, "x" * 5), Reason.LENGTH_RATIO),
        (("x" * 5, LONG), Reason.LENGTH_RATIO),
        ((LONG, LONG), Reason.IDENTICAL),
        (("The cat.", "Le chat."), Reason.DUPLICATE),
    ],
)
def test_a_bad_pair_is_left_out_for_its_reason(pair, reason):
    pairs, report = cleaned([("The cat.", "Le chat."), pair, pair])
    assert pairs == [("The cat.", "Le chat.")]
    assert report == CleaningReport(read=3, kept=1, dropped={reason: Dropped(2, 2)})


@pytest.mark.parametrize(
    "pair",
    [
        ("a", "a"),
        ("Paris", "Paris"),
        ("a" * 49, "x"),
        ("a" * 2000, "x" * 2000),
        (LONG, LONG.upper()),
        ("a" * 54, "x" * 6),
        (" kept as it is ", "x\u2028y"),
    ],
)
def test_a_good_pair_is_kept_as_it_is(pair):
    assert cleaned([pair])[0] == [pair]


def test_each_rule_can_be_moved():
    assert cleaned([(LONG, LONG)], drop_identical=False)[0]
    assert cleaned([("a", "x"), ("a", "x")], drop_duplicates=False)[1].kept == 2
    assert cleaned([(LONG, "x" * 5)], max_length_ratio=20)[0]
    assert not cleaned([("aaaa", "x")], short_chars=0, max_length_ratio=3)[0]
    assert not cleaned([("aaaa", "x")], max_chars=3)[0]


def test_pairs_that_share_one_side_are_no_duplicates():
    assert cleaned([("a", "x"), ("a", "y"), ("b", "x")])[1].kept == 3


def test_pairs_that_only_join_to_the_same_text_are_no_duplicates():
    assert cleaned([("ab", "c"), ("a", "bc"), ("1", "1 a"), ("11", " a")])[1].kept == 4


def test_a_corpus_of_single_symbols_keeps_each_once():
    pairs, _ = cleaned([(symbol, symbol) for symbol in "abcabcabc"])
    assert pairs == [("a", "a"), ("b", "b"), ("c", "c")]


def test_duplicates_are_found_among_many_pairs():
    numbers = [*range(100_000), *range(0, 100_000, 1000), *range(100_000, 101_000)]
    pairs, report = cleaned([(str(number), "x") for number in numbers])
    assert [int(source) for source, _ in pairs] == [*range(101_000)]
    assert report.dropped == {Reason.DUPLICATE: Dropped(100, 100_001)}


def test_duplicates_take_few_bytes_of_memory_for_each_pair():
    count = 300_000
    records = (PairRecord(number, str(number), "x") for number in range(count))
    tracemalloc.start()
    assert sum(1 for _ in clean(records, CleaningConfig(), CleaningReport())) == count
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 * count  # a set of digests takes 80 bytes of each, and 120 while it grows


texts = st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from([*Fault, LONG, "a"]))


@given(st.lists(st.tuples(texts, texts)))
def test_every_pair_is_kept_or_counted(records):
    pairs, report = cleaned(records)
    assert report.read == len(records)
    assert report.kept == len(pairs) == len(set(pairs))
    assert report.kept + sum(dropped.count for dropped in report.dropped.values()) == report.read
    assert all(pair in records for pair in pairs)


def test_a_report_survives_json():
    _, report = cleaned([("", "x"), ("a", "x"), ("a", "x"), (LONG, LONG)])
    report.dropped[Reason.SOURCE_HELD_OUT] = Dropped(3, None)
    written = report.as_dict()
    assert set(written["dropped"]) == set(Reason)
    assert written["dropped"]["over_long"] == {"count": 0, "first_line": None}
    assert CleaningReport.from_dict(json.loads(json.dumps(written))) == report


def test_a_report_reads_well():
    _, report = cleaned([("", "x"), ("a", "x"), *[(str(n), str(n)) for n in range(1498)], ("a", "x")])
    assert report.lines() == [
        "    1,499 of 1,501 pairs kept",
        "        1 empty, first at line 1",
        "        1 duplicate, first at line 1,501",
    ]
    assert report.summary() == "1,499 of 1,501 pairs kept, 1 empty, 1 duplicate"


def test_cleaning_is_lazy():
    endless = (PairRecord(line, str(line), "x") for line in iter(int, 1))
    assert next(clean(endless, CleaningConfig(), CleaningReport())) == ("0", "x")
