"""The word error rate of transcriptions."""

import pytest

from regardant.evaluation.transcription import word_error_rate


def test_words_that_are_replaced_left_out_and_added_count_alike():
    references = ["one two three four", "five six"]
    assert word_error_rate(references, references) == 0
    hypotheses = ["one too three", "five six seven"]  # one replaced, one left out, one added
    assert word_error_rate(hypotheses, references) == pytest.approx(3 / 6)


def test_it_is_a_share_of_all_words_not_a_mean_over_texts():
    assert word_error_rate(["a b c d", ""], ["a b c d", "e"]) == pytest.approx(1 / 5)


def test_it_may_exceed_one():
    assert word_error_rate(["one two three"], ["four"]) == 3
