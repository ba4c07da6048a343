"""Questions about digits: right answers, and no part that gives them alone."""

import numpy as np

from regardant.data.digit_questions import QUESTIONS, DigitQuestionsConfig
from regardant.data.digits import DigitsConfig

SIZES = {"train_size": 600, "validation_size": 60, "test_size": 60}


def test_neither_a_question_nor_a_digit_decides_the_answer():
    assert all(len(true_of) == 5 for _, true_of in QUESTIONS)
    for digit in range(10):
        assert sum(digit in true_of for _, true_of in QUESTIONS) == len(QUESTIONS) / 2
    for (_, one), (_, opposite) in zip(QUESTIONS[::2], QUESTIONS[1::2], strict=True):
        assert one | opposite == set(range(10)) and not one & opposite


def test_answers_are_right_and_splits_have_their_own_digits():
    digits = DigitsConfig().read(3)
    known = {name: {image.tobytes(): int(label) for image, label in items} for name, items in digits.items()}
    sets = DigitQuestionsConfig(**SIZES).read(3)
    assert {name: len(items) for name, items in sets.items()} == {"train": 600, "validation": 60, "test": 60}
    for name, items in sets.items():
        for item, answer in items:
            digit = known[name][item["image"].tobytes()]
            assert answer == ("yes" if digit in dict(QUESTIONS)[item["question"]] else "no")
    shares = [np.mean([answer == "yes" for _, answer in items]) for items in sets.values()]
    assert 0.4 < shares[0] < 0.6


def test_the_seed_decides():
    one, same, other = (DigitQuestionsConfig(**SIZES).read(seed)["train"] for seed in (1, 1, 2))
    questions = [[item["question"] for item, _ in items] for items in (one, same, other)]
    assert questions[0] == questions[1] != questions[2]
