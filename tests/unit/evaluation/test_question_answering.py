import pytest

from regardant.evaluation.question_answering import (
    exact_match,
    no_answer_threshold,
    normalised_answer,
    score_answers,
    token_f1,
)


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("The  old\tJudge!", "old judge"),
        ("a cat, an owl and the theatre", "cat owl and theatre"),
        ("U.S. 1990-91", "us 199091"),  # signs go first, so that no space takes their place
        ("the a an.", ""),
        ("Été", "été"),
    ],
)
def test_case_signs_articles_and_spaces_count_nothing(answer, left):
    assert normalised_answer(answer) == left


@pytest.mark.parametrize(
    ("given", "right", "exact", "f1"),
    [
        ("the red cat", ["red cat"], True, 1),
        ("cat red", ["red cat"], False, 1),  # a bag of tokens
        ("the big red cat", ["red cat"], False, 2 * (2 / 3) * 1 / (2 / 3 + 1)),
        ("cat cat", ["cat"], False, 2 * (1 / 2) * 1 / (1 / 2 + 1)),
        ("dog", ["red cat"], False, 0),
        ("dog", ["cat", "a dog", "dog dog"], True, 1),  # the nearest one counts
        ("", [], True, 1),
        ("cat", [], False, 0),
        ("", ["cat"], False, 0),
        ("", ["the", "cat"], False, 0),
        ("the", [], True, 1),
        ("", ["a"], True, 1),  # nothing is left of any right answer
    ],
)
def test_answers_are_scored_as_by_hand(given, right, exact, f1):
    assert exact_match(given, right) is exact
    assert token_f1(given, right) == pytest.approx(f1)


def test_scores_are_means_over_questions_and_no_answer_is_a_class():
    right = [["red cat"], ["dog"], [], [], ["owl"]]
    scores = score_answers(["red cat", "", "", "hen", "old owl"], right)
    assert scores.exact_match == pytest.approx(2 / 5)
    assert scores.f1 == pytest.approx((1 + 0 + 1 + 0 + 2 / 3) / 5)
    precision, recall = 1 / 2, 1 / 2  # of two empty answers one is right, and of two questions without an answer
    assert scores.no_answer_f1 == pytest.approx(2 * precision * recall / (precision + recall))
    assert (scores.no_answers, scores.items) == (2, 5)
    assert score_answers(["cat"], [["cat"]]).no_answer_f1 == 1
    assert score_answers([""], [["cat"]]).no_answer_f1 == 0


def test_the_threshold_has_the_highest_f1():
    best, right = ["cat", "dog", "owl", "hen"], [["cat"], [], ["owl"], []]
    assert no_answer_threshold([5.0, 1.0, 3.0, -2.0], best, right) == 2.0  # between dog and owl
    assert no_answer_threshold([5.0, 4.0, 3.0, -2.0], best, right) == 0.5  # of equally good ones that nearest to 0
    assert no_answer_threshold([5.0, 1.0, 3.0, -2.0], best, [[]] * 4) == 6.0
    assert no_answer_threshold([5.0, 1.0, 3.0, 2.0], best, [[one] for one in best]) == 0.0
    assert no_answer_threshold([1.0, 1.0], ["cat", "dog"], [["cat"], []]) in (0.0, 2.0)
