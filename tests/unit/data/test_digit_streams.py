"""Captions and images in one text: codes and back, order, splits."""

import numpy as np
import pytest

from regardant.data.digit_streams import Codebook, DigitStreamsConfig
from regardant.data.digit_words import WORDS
from regardant.data.digits import DigitsConfig
from regardant.errors import DataError

SMALL = DigitStreamsConfig(codes=16, train_size=300, validation_size=40, test_size=60)


def test_an_image_is_written_in_the_nearest_code_of_each_patch_and_read_again():
    book = Codebook(np.array([[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0]], np.float32))
    image = np.zeros((8, 8), np.float32)
    image[0:2, 2:4] = 0.9
    image[2:4, 0] = 1.0
    text = book.encode(image)
    assert text == "".join(chr(0x2800 + code) for code in [0, 1, 0, 0, 2, *[0] * 11])
    again = book.decode(text)
    assert np.array_equal(again, np.round(image)) and again.dtype == np.float32


def test_test_images_are_near_their_codes():
    book, images = SMALL.codebook(), [image for image, _ in DigitsConfig().read(1)["test"]]
    off = [np.abs(book.decode(book.encode(image)) - image).mean() for image in images]
    blank = [np.abs(image - np.mean(images)).mean() for image in images]
    assert np.mean(off) < np.mean(blank) / 3


def test_lines_have_a_caption_and_the_image_of_its_digit_in_either_order():
    texts, book, digits = SMALL.texts(), SMALL.codebook(), DigitsConfig().read(1)
    first = 0
    for name, text in texts.items():
        known = {(book.encode(image), int(label)) for image, label in digits[name]}
        for line in text.splitlines():
            words, codes = sorted(line.split(": "))  # letters come before codes
            first += line.startswith(words)
            digit = next(number for number in range(10) if {WORDS[number], str(number)} & set(words.split()))
            assert (codes, digit) in known
    assert 150 < first < 250


def test_sizes_are_those_of_the_texts_and_the_seed_decides():
    texts = SMALL.texts()
    assert SMALL.sizes() == {name: len(text) for name, text in texts.items()}
    assert "".join(SMALL.pieces()) == "".join(texts.values())
    assert [text.count("\n") for text in texts.values()] == [300, 40, 60]
    assert SMALL.texts() == texts != SMALL.model_copy(update={"seed": 2}).texts()


@pytest.mark.parametrize("text", ["", "a" * 16, "⠀" * 15, "⠀" * 15 + chr(0x2800 + 16)])
def test_a_text_that_is_no_image_is_told(text):
    with pytest.raises(DataError, match="is not an image: an image is 16 codes, of 16 different ones"):
        SMALL.codebook().decode(text)
