import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.significance import PairedTest

from regardant.errors import DataError
from regardant.evaluation.comparison import compare_translations, length_quarters
from regardant.evaluation.translation import TranslationMetrics, corpus_bleu, score

RANDOM = Random(5)
REFERENCES = [" ".join(RANDOM.choices("abcdefgh", k=RANDOM.randint(4, 20))) for _ in range(80)]
SOURCES = [line.upper() + " ." for line in REFERENCES]
CONFIG = TranslationMetrics(bootstrap_samples=200)


def spoilt(share, seed=1):
    """The references with that share of their words replaced."""
    random = Random(seed)
    return [" ".join("x" if random.random() < share else word for word in line.split()) for line in REFERENCES]


GOOD, BAD, NEAR = spoilt(0.1), spoilt(0.4), spoilt(0.12, seed=2)


def compared(*translations, config=CONFIG):
    return compare_translations(SOURCES, REFERENCES, translations, config)[0]


def resampled_differences(first, other, samples):
    """The differences in BLEU on the sentences that sacreBLEU draws, each scored from its texts."""
    drawn = np.random.default_rng(12345).choice(len(REFERENCES), size=(samples, len(REFERENCES)))

    def bleu(lines, rows):
        return sacrebleu.corpus_bleu([lines[row] for row in rows], [[REFERENCES[row] for row in rows]]).score

    return np.array([bleu(other, rows) - bleu(first, rows) for rows in drawn])


def test_scores_are_those_of_sacrebleu():
    for scores, lines in zip(compared(GOOD, BAD), (GOOD, BAD), strict=True):
        assert scores.bleu == sacrebleu.corpus_bleu(lines, [REFERENCES]).score
        assert scores.chrf == sacrebleu.corpus_chrf(lines, [REFERENCES]).score


def test_scores_and_signature_are_those_of_sacrebleu_s_paired_test():
    metric = {"BLEU": sacrebleu.BLEU()}
    systems = [("a", GOOD), ("b", BAD), ("c", NEAR)]
    signatures, expected = PairedTest(systems, metric, [REFERENCES], test_type="bs", n_samples=200)()
    found, told = compare_translations(SOURCES, REFERENCES, [GOOD, BAD, NEAR], CONFIG)
    assert [one.bleu for one in found] == [result.score for result in expected["BLEU"]]
    assert told.bleu == str(signatures["BLEU"])
    assert {"bs:200", "seed:12345", "tok:13a"} <= set(told.bleu.split("|"))
    assert found[0].against_first is None


@pytest.mark.parametrize("pair", [(GOOD, NEAR), (NEAR, GOOD), (GOOD, BAD)], ids=["near", "turned", "far"])
def test_p_is_the_share_of_resampled_differences_as_far_from_the_difference_as_zero(pair):
    samples = 60
    first, other = compared(*pair, config=TranslationMetrics(bootstrap_samples=samples))
    difference = other.bleu - first.bleu
    distances = abs(resampled_differences(*pair, samples) - difference)
    as_far = sum(distance >= abs(difference) for distance in distances)
    assert other.against_first.p == pytest.approx((as_far + 1) / (samples + 1))


def test_the_sacrebleu_command_has_the_same_score_and_the_p_of_one_tail(tmp_path: Path):
    for name, lines in (("references", REFERENCES), ("good", GOOD), ("near", NEAR)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "references", "-i", "good", "near", "-w", "6", "-m", "bleu"]
    printed = subprocess.check_output([*command, "--paired-bs", "--paired-bs-n", "200"], cwd=tmp_path, text=True)
    (told,) = (system["BLEU"] for system in json.loads(printed) if system["system"] == "near")
    _, other = compared(GOOD, NEAR)
    assert other.bleu == pytest.approx(told["score"], abs=1e-6)
    assert 0.05 < told["p_value"] < other.against_first.p


def test_the_interval_holds_the_differences_of_the_same_sentences_drawn_for_both():
    samples = 40
    _, other = compared(GOOD, BAD, config=TranslationMetrics(bootstrap_samples=samples))
    expected = tuple(np.quantile(resampled_differences(GOOD, BAD, samples), [0.025, 0.975]))
    assert other.against_first.interval == pytest.approx(expected, abs=1e-6)


def test_scores_and_intervals_are_those_of_an_evaluation_of_the_same_sentences():
    config = TranslationMetrics(bootstrap_samples=40)
    (found,) = compared(BAD, config=config)
    parts = [(list(range(len(REFERENCES))), found), *zip(length_quarters(SOURCES), found.by_length, strict=True)]
    for rows, part in parts:
        expected = score([BAD[row] for row in rows], [REFERENCES[row] for row in rows], config)
        assert part.bleu == pytest.approx(expected.bleu) and part.interval == expected.bleu_interval
    assert found.interval[1] - found.interval[0] < min(one.interval[1] - one.interval[0] for one in found.by_length)


def test_a_difference_is_signed_and_turns_with_the_order():
    (_, worse), (_, better) = compared(GOOD, BAD), compared(BAD, GOOD)
    assert worse.against_first.difference == pytest.approx(worse.bleu - better.bleu)
    assert worse.against_first.difference == -better.against_first.difference < 0
    assert worse.against_first.interval[1] < 0 < better.against_first.interval[0]
    assert worse.against_first.p == better.against_first.p == 1 / 201


@pytest.mark.parametrize("lines", [GOOD, ["nothing"] * len(REFERENCES)], ids=["some", "none"])
def test_equal_scores_are_no_significant_difference(lines):
    other = [*lines[:-1], lines[-1] + " "] if lines is GOOD else ["nought"] * len(REFERENCES)
    _, same = compared(lines, other)
    assert same.against_first.difference == 0
    assert same.against_first.interval == (0, 0)
    assert same.against_first.p == 1


def test_the_scores_of_a_length_are_of_its_sentences_alone():
    (scores,) = compared(BAD)
    assert sum(part.sentences for part in scores.by_length) == len(REFERENCES)
    for part in scores.by_length:
        rows = [row for row, line in enumerate(SOURCES) if part.words[0] <= len(line.split()) <= part.words[1]]
        assert len(rows) == part.sentences
        assert part.bleu == corpus_bleu([BAD[row] for row in rows], [REFERENCES[row] for row in rows], CONFIG)
    assert len(scores.by_length) == 4
    assert scores.by_length[0].words[0] == min(len(line.split()) for line in SOURCES)
    assert scores.by_length[-1].words[1] == max(len(line.split()) for line in SOURCES)


@pytest.mark.parametrize(
    ("lengths", "classes"),
    [
        ([8, 1, 2, 7, 6, 3, 4, 5], [[1, 2], [5, 6], [4, 7], [0, 3]]),
        ([1, 2, 3, 4, 5], [[0, 1], [2], [3], [4]]),  # who stands on a quartile is below it
        ([7, 7, 7], [[0, 1, 2]]),
    ],
)
def test_sources_are_cut_at_the_quartiles_of_their_lengths(lengths, classes):
    assert length_quarters(["a " * length for length in lengths]) == classes


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_every_sentence_is_in_one_class_with_all_of_its_length(lengths):
    classes = length_quarters(["w " * length for length in lengths])
    assert 1 <= len(classes) <= 4
    assert sorted(row for rows in classes for row in rows) == list(range(len(lengths)))
    spans = [(min(lengths[row] for row in rows), max(lengths[row] for row in rows)) for rows in classes]
    assert all(before[1] < after[0] for before, after in pairwise(spans))


def test_all_are_scored_as_they_are_configured():
    shouted = [line.upper() for line in GOOD]
    _, cased = compared(GOOD, shouted)
    assert cased.bleu < 1
    blind, signatures = compare_translations(
        SOURCES, REFERENCES, [GOOD, shouted], TranslationMetrics(lowercase=True, bootstrap_samples=20)
    )
    assert blind[1].bleu == blind[0].bleu and blind[1].chrf == blind[0].chrf
    assert "case:lc" in signatures.bleu and "case:lc" in signatures.chrf


@pytest.mark.parametrize("sources, lines", [(SOURCES, GOOD[1:]), (SOURCES[1:], GOOD)])
def test_unequal_counts_are_refused(sources, lines):
    with pytest.raises(DataError, match="79 translations for 80 references"):
        compare_translations(sources, REFERENCES, [GOOD, lines], CONFIG)
