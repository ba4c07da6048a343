"""The last lines of a training: what was done, and why that is not what was announced."""

import pytest

from regardant.training.cursor import Cursor, Outcome
from regardant.training.metrics import Metric

BLEU = Metric("bleu", higher_is_better=True)


def outcome(announced, *, update=777, without_better=0):
    cursor = Cursor(update=update, seconds=120.0, validation_seconds=12.0, best=97.46, best_update=600)
    cursor.without_better = without_better
    return Outcome(cursor, True, 1000, BLEU, patience=3, announced=announced)


@pytest.mark.parametrize("announced", [None, 777, 800])
def test_what_was_done_is_one_line(announced):
    assert outcome(announced).summary() == [
        "777 updates in 2.0 minutes (10% of it validation), best validation bleu 97.46 at update 600"
    ]


def test_weights_kept_from_a_later_validation_are_named():
    made = outcome(None)
    made.cursor.kept, made.cursor.kept_update = 97.25, 700
    assert made.summary()[0].endswith(
        "best validation bleu 97.46 at update 600, kept weights of update 700 with 97.25, which differs by noise only"
    )


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (
            outcome(1070),
            "1,070 updates were announced and 777 made: updates were slower than measured before training, and the "
            "minutes of the budget were over",
        ),
        (
            outcome(1070, without_better=3),
            "1,070 updates were announced and 777 made: 3 validations in a row were not better",
        ),
        (outcome(500), "500 updates were announced and 777 made: updates were faster than measured before training"),
    ],
)
def test_a_difference_from_what_was_announced_is_one_sentence(made, why):
    assert made.summary()[1:] == [why]
