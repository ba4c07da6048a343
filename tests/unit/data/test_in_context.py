from collections import Counter, defaultdict
from random import Random

import pytest
from pydantic import ValidationError

from regardant.data.in_context import InContextConfig


def lines(**fields):
    return "".join(InContextConfig(**fields).pieces()).splitlines()


def test_a_letter_has_one_digit_in_a_line_and_another_in_others():
    found = lines(lines=2500)
    digits = defaultdict(Counter)
    for line in found:
        examples = line.split(" ")
        assert len(examples) == 15 and all(len(one) == 2 for one in examples)
        own = dict(tuple(one) for one in examples)
        assert all(own[letter] == digit for letter, digit in examples)
        for letter, digit in own.items():
            digits[letter][digit] += 1
    assert len(found) == 2500 and set(digits) == set("abcde")
    for counts in digits.values():
        assert set(counts) == set("0123456789")
        assert max(counts.values()) < 1.4 * min(counts.values())


def test_letters_are_drawn_alike_and_may_come_again():
    letters = Counter(one[0] for line in lines(lines=500, letters=3) for one in line.split())
    assert set(letters) == set("abc") and max(letters.values()) < 1.1 * min(letters.values())
    again = [line.split()[1] in line.split()[:1] for line in lines(lines=500, letters=3)]
    assert 0.27 < sum(again) / len(again) < 0.4


def test_settings_are_the_size_of_the_text():
    found = lines(lines=7, letters=2, examples=3)
    assert len(found) == 7 and all(len(line) == 8 for line in found)
    config = InContextConfig(lines=100, examples=3, validation_share=0.25)
    assert config.sizes() == {"train": 675, "validation": 225}
    assert list(config.pieces()) == list(config.pieces())


def test_windows_of_a_power_of_two_begin_at_every_place_of_a_line():
    size = len(lines(lines=1)[0]) + 1
    assert {start % size for start in range(0, 64 * size, 64)} == set(range(size))


def test_examples_of_a_prompt_are_those_of_one_function():
    config = InContextConfig(letters=26)
    drawn = config.draw(Random(1), 200)
    assert len(drawn) == 200 and len(set(drawn)) == len({one[0] for one in drawn}) == 26


@pytest.mark.parametrize("fields", [{"letters": 0}, {"letters": 27}, {"examples": 1}, {"lines": 0}, {"source": "a"}])
def test_settings_without_a_text_are_refused(fields):
    with pytest.raises(ValidationError):
        InContextConfig(**fields)
