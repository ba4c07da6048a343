"""Shares of right images and captions, of a writer that is always right and of one that never is."""

from types import SimpleNamespace

import pytest

from benchmarks.digit_streams import measure
from regardant.data.captioned_digits import WORDS
from regardant.data.digit_streams import DigitStreamsConfig
from regardant.data.digits import DigitsConfig

DATA = DigitStreamsConfig(codes=32)


class Writer:
    """Writes the codes of a test image of the digit in a caption, and the caption of the image in codes."""

    config = SimpleNamespace(data=DATA)

    def __init__(self, shift):
        book = DATA.codebook()
        self.digits = {book.encode(image): (int(label) + shift) % 10 for image, label in DigitsConfig().read(1)["test"]}
        self.images = {digit: codes for codes, digit in self.digits.items()}

    def generate(self, prompt, *, samples=1, **options):
        given = prompt.removesuffix(": ")
        if given in self.digits:
            return [f"a handwritten {WORDS[self.digits[given]]}\nthe number {WORDS[0]}"] * samples
        words = set(given.split())
        digit = next(number for number in range(10) if {WORDS[number], str(number)} & words)
        return [self.images[digit]] * (samples - 1) + ["⠀" * 15]


@pytest.mark.parametrize(("shift", "images", "captions"), [(0, (0.4, 0.5), 1.0), (1, (0.0, 0.1), 0.0)])
def test_images_and_captions_are_compared_with_the_digits_that_were_asked_for(shift, images, captions):
    found = measure(Writer(shift), samples=2, images=30)
    assert found["images"] == 140 and found["images_broken"] == 0.5
    assert images[0] <= found["images_recognised"] <= images[1]
    assert found["captions_right"] == captions and found["captions"] == 30
    assert 0.9 < found["test_images_in_codes_recognised"] <= found["test_images_recognised"] < 1
