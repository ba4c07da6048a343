"""Scores of texts by name."""

from typing import get_args

import pytest

from regardant.errors import DataError
from regardant.evaluation.texts import TEXT_SCORES, TextMetrics, exact_match, word_error_rate
from regardant.evaluation.translation import TextScoreName
from regardant.tasks.sequence_to_sequence.config import TEXT_METRICS


def edits(given, right):
    """Words to substitute, insert and delete."""
    row = list(range(len(right) + 1))
    for i, word in enumerate(given, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(right, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return row[-1]


def test_every_name_has_a_score_and_a_direction():
    assert set(TEXT_SCORES) == set(get_args(TextScoreName)) == set(TEXT_METRICS)
    for name, score in TEXT_SCORES.items():
        right, wrong = (score([text], ["(S a b c d)"], TextMetrics()) for text in ("(S a b c d)", "(S x y"))
        assert (right > wrong) == TEXT_METRICS[name].higher_is_better, name


def test_the_word_error_rate_is_edits_over_the_words_of_all_references():
    texts = ["three one", "one one seven seven", "", "two"]
    references = ["three one seven", "one seven", "four", "two"]
    counted = sum(edits(a.split(), b.split()) for a, b in zip(texts, references, strict=True))
    assert word_error_rate(texts, references) == pytest.approx(counted / 7)
    assert word_error_rate(references, references) == 0
    assert word_error_rate(["a b c d"], ["x"]) == 4


def test_exact_match_is_the_share_of_equal_texts():
    assert exact_match(["a", "b c", "b  c"], ["a", "b c", "b c"]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("score", [exact_match, word_error_rate])
def test_unequal_counts_are_refused(score):
    with pytest.raises(DataError, match="2 translations for 1 references"):
        score(["a", "b"], ["a"])
