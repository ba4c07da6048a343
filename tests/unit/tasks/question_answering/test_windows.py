"""Windows of long contexts, and the best span over them, against explicit loops."""

import math
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
import torch

from regardant.data.questions import ContextQuestion
from regardant.errors import DataError
from regardant.modalities.questions import ANSWER, ENDS, FIRST, LAST, NOWHERE, STARTS
from regardant.tasks.items.data import Planned
from regardant.tasks.question_answering.spans import best_spans, find_answers, texts_of
from regardant.tasks.question_answering.windows import EncodedQuestions, WindowShape, span_of

SHAPE = WindowShape(max_length=12, max_answer_length=3, stride=None)


def encoded(question, context, answer=None):
    """A question of so many tokens with its separator, and a context of one-letter tokens with a space after each."""
    rows = [(number, NOWHERE, NOWHERE, 0) for number in range(question)]
    rows += [(100 + number, 2 * number, 2 * number + 1, 0) for number in range(context)]
    found = np.array(rows, np.int32)
    if answer is not None:
        found[question + answer[0], ANSWER] += FIRST
        found[question + answer[1], ANSWER] += LAST
    return found


def given(context):
    return ContextQuestion("?", " ".join(chr(97 + number % 26) for number in range(context)))


@pytest.mark.parametrize("stride", [None, 1, 2, 4, 100])
def test_windows_cover_a_context_and_every_answer_is_whole_in_one(stride):
    shape = replace(SHAPE, stride=stride)
    for question, context in product((1, 4, 9), (1, 3, 8, 9, 20, 31)):
        room, starts = 12 - question, shape.starts(question, context)
        assert starts[0] == 0 and all(start < later for start, later in pairwise(starts))
        ends = [min(start + room, context) for start in starts]
        assert ends[-1] == context and (len(starts) > 1) == (context > room)
        for first, length in product(range(context), range(1, 4)):
            if first + length <= context:
                assert any(start <= first and first + length <= end for start, end in zip(starts, ends, strict=True))
    if stride == 2:
        assert shape.starts(4, 13) == [0, 2, 4, 5]


def test_a_window_is_the_question_with_a_part_of_the_context():
    item = encoded(4, 20, (9, 10))
    split = EncodedQuestions.of_questions([encoded(3, 5), item], [given(5), given(20)], SHAPE)
    assert split.numbers.tolist() == [0, 1, 1, 1, 1] and split.rows.tolist() == [8, 12, 12, 12, 12]
    for window, start in zip([split.items[number] for number in range(1, 5)], (0, 4, 8, 12), strict=True):
        assert np.array_equal(window, np.concatenate([item[:4], item[4 + start : 12 + start]]))
    # counted from the class token; the first window has no part of the answer, the third one all of it
    assert [span_of(split.items[number]) for number in range(5)] == [(0, 0), (0, 0), (10, 11), (6, 7), (0, 0)]
    assert span_of(encoded(4, 8, (7, 7))) == (12, 12)
    assert len(split.first(2)) == 2 and split.first(2).numbers.tolist() == [0, 1]


def test_a_part_of_an_answer_is_no_answer():
    item = encoded(4, 9, (7, 8))
    split = EncodedQuestions.of_questions([item], [given(9)], replace(SHAPE, max_answer_length=1))
    assert [span_of(split.items[number]) for number in range(2)] == [(0, 0), (11, 12)]


def test_a_question_without_room_for_an_answer_is_refused_where_the_context_is_longer():
    assert SHAPE.starts(10, 2) == [0]
    told = "a question of 9 tokens leaves 2 of the model's 12 tokens for a longer context, and answers may have 3"
    with pytest.raises(DataError, match=told):
        SHAPE.starts(10, 3)


@pytest.fixture
def scores():
    return torch.randn(3, 9, 2, generator=torch.Generator().manual_seed(4)) * 3


@pytest.mark.parametrize("longest", [1, 3, 30])
def test_the_best_span_is_that_of_all_pairs(scores, longest):
    allowed = torch.ones(3, 8, dtype=torch.bool)
    allowed[:, :3] = allowed[1, 7] = False
    found = best_spans(scores, allowed, longest)
    for row in range(3):
        pairs = [
            (float(scores[row, 1 + first, 0] + scores[row, 1 + last, 1] - scores[row, 0].sum()), first, last)
            for first, last in product(range(8), repeat=2)
            if allowed[row, first] and allowed[row, last] and 0 <= last - first < longest
        ]
        score, first, last = max(pairs)
        assert (int(found[1][row]), int(found[2][row])) == (first, last)
        assert float(found[0][row]) == pytest.approx(score, rel=1e-5)


def test_padding_is_no_answer(scores):
    scores[0, 5:] = -math.inf
    score, _, last = best_spans(scores, torch.ones(3, 8, dtype=torch.bool), 30)
    assert score.isfinite().all() and int(last[0]) < 4


def test_the_answer_of_a_question_is_the_best_of_its_windows():
    """Scores of a window count relative to no answer in the same window."""
    split = EncodedQuestions.of_questions([encoded(4, 12), encoded(3, 5)], [given(12), given(5)], SHAPE)
    assert split.numbers.tolist() == [0, 0, 1]
    flat = torch.zeros(3, 13, 2)
    flat[0, 0] = 5.0  # no answer is likely in the first window, in spite of the high scores of its last letter
    flat[0, 12] = 6.0
    flat[1, 5 + 4] = 2.0  # tokens of the second window begin 4 letters later
    flat[2, 0] = 1.0
    flat[2, 3, 0], flat[2, 6, 1] = 9.0, 9.0  # a token of the question cannot start an answer
    plan = [Planned(0, 0, np.array([1, 0])), Planned(0, 1, np.array([2]))]
    answers = [(flat[[1, 0]], None), (flat[[2], :9], None)]
    first, second = find_answers(split, plan, answers, 3)
    assert (first.window, first.score) == (1, 4.0)
    assert first.start == 2 * (4 + 4) and first.end == first.start + 1
    assert second.score == 9 - 2 and split.questions[1].context[second.start : second.end].endswith("c")
    assert texts_of([first, second], split.questions) == ["i", split.questions[1].context[second.start : second.end]]
    assert texts_of([first, second], split.questions, 4.0)[0] == ""
    assert {STARTS, ENDS} == {1, 2}
