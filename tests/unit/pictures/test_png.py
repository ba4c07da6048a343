from io import BytesIO

import numpy as np
from PIL import Image

from regardant.pictures import AttentionPicture, heat_map_svg, png

PAPER, INK = (0xFD, 0xFC, 0xF9), (0x1D, 0x4F, 0x9E)


def drawn(word="a"):
    drawing = heat_map_svg(AttentionPicture("t", [word], ["b"], np.ones((1, 1, 1, 1))), 0, 0)
    return np.asarray(Image.open(BytesIO(png(drawing))).convert("RGB")).astype(int)


def of_colour(image, colour):
    return (np.abs(image - colour).max(-1) < 8).sum()


def test_the_pixels_are_those_of_the_drawing_twice_as_dense():
    image = drawn()
    assert 60 * 60 < of_colour(image, INK) < 66 * 66  # one cell of 32 by 32
    assert of_colour(image, PAPER) > image.shape[0] * image.shape[1] / 2


def test_words_are_drawn():
    assert of_colour(drawn("Wörter"), (0x21, 0x24, 0x2B)) > of_colour(drawn("."), (0x21, 0x24, 0x2B)) + 50
