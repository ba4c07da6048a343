"""Brackets of trees, against the definitions of PARSEVAL."""

from collections import Counter
from random import Random

import pytest

from regardant.errors import DataError
from regardant.evaluation.trees import bracket_f1, brackets, well_formed

TREE = "(S (NP a cat) (VP sees (NP it)) .)"


def test_brackets_are_labels_with_their_spans_of_words():
    expected = {("S", 0, 5): 1, ("NP", 0, 2): 1, ("VP", 2, 4): 1, ("NP", 3, 4): 1}
    assert brackets(TREE) == expected
    assert brackets("(S (NP a cat )NP (VP sees (NP it )NP )VP . )S") == expected
    assert brackets("(S (NP (NP x)))") == Counter({("NP", 0, 1): 2, ("S", 0, 1): 1})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a cat",
        "(S a",
        "(S a))",
        "(S a) (S b)",
        "(S a) b",
        "a (S b)",
        "(a)(b c)",
        "(S ())",
        "(S)",
        "( S a)",
        "(S (NP a )VP )S",
        ")S a (S",
    ],
)
def test_what_is_no_tree_has_no_brackets(text):
    assert brackets(text) is None
    assert well_formed([text, "(S a)"]) == 0.5


def test_the_f1_is_counted_over_all_brackets_of_a_corpus():
    given = ["(S (NP a cat) (NP sees (NP it)) .)", "(S a (NP b))"]
    gold = [TREE, "(S (NP a) b)"]
    # Right are three of four brackets, and one of two: the S.
    assert bracket_f1(given, gold) == pytest.approx(2 * (3 + 1) / ((4 + 2) + (4 + 2)))
    assert bracket_f1(gold, gold) == 1


def test_a_bracket_that_occurs_twice_is_found_once_by_one():
    assert bracket_f1(["(S (NP a))"], ["(S (NP (NP a)))"]) == pytest.approx(2 * 2 / (2 + 3))


def test_a_text_that_is_no_tree_finds_nothing_and_is_missed():
    assert bracket_f1(["(S a", "(S a)"], ["(S a)", "(S a)"]) == pytest.approx(2 * 1 / (1 + 2))
    assert bracket_f1(["a"], ["(S a)"]) == 0


def test_random_trees_are_read_as_they_are_written():
    random = Random(1)

    def write(depth, start):
        """Return a random tree, its end and its brackets."""
        label, found, end, parts = random.choice("ABC"), Counter(), start, []
        for _ in range(random.randint(1, 3)):
            if depth and random.random() < 0.5:
                part, end, inner = write(depth - 1, end)
                found += inner
            else:
                part, end = "x", end + 1
            parts.append(part)
        found[label, start, end] += 1
        return f"({label} {' '.join(parts)}{random.choice(['', ' '])}){random.choice(['', label])}", end, found

    for _ in range(50):
        text, _, expected = write(4, 0)
        assert brackets(text) == expected


def test_a_reference_that_is_no_tree_is_refused_in_one_line():
    with pytest.raises(DataError, match=r"^the text 'a cat' is no tree in brackets: give one such as .*metrics$"):
        bracket_f1(["(S a)"], ["a cat"])
