import pytest

from benchmarks.bars import bar, rounded, shown, told


@pytest.mark.parametrize(
    ("value", "at_least", "kept"),
    [(1.5, True, True), (1.49, True, False), (1.5, False, True), (1.51, False, False), (None, True, None)],
)
def test_a_bar_is_kept_on_its_own_side_of_the_limit_and_at_it(value, at_least, kept):
    assert bar("speed", value, 1.5, at_least=at_least)["pass"] is kept


def test_a_bar_that_is_missed_is_told_in_capitals_and_a_goal_is_not():
    missed, goal, unknown = told(
        [bar("speed", 1.0, 2.0, at_least=True), bar("dream", 1.0, 2.0, at_least=True, goal=True), bar("later", None, 1)]
    )
    assert missed.split() == ["FAIL", "1", ">=", "2.0", "speed"]
    assert goal.split() == ["not", "met", "1", ">=", "2.0", "dream"]
    assert unknown.split() == ["not", "measured", "-", "<=", "1", "later"]


def test_numbers_have_four_digits_in_files_and_three_before_people():
    assert (rounded(1234.567), rounded(0.00123456), rounded(None)) == (1235.0, 0.001235, None)
    assert (shown(1234.5), shown(99.96), shown(0.012345), shown(None)) == ("1,234", "100", "0.0123", "-")
