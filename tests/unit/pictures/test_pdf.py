import re
import zlib

import numpy as np

from regardant.pictures import AttentionPicture, head_svg, pdf

PICTURE = AttentionPicture("A pair", ["the", "cat"], ["chat"], np.array([[[[0.2, 0.8]]]]))


def test_a_drawing_is_one_page_of_its_size_with_letters_and_no_pixels():
    drawing = head_svg(PICTURE, 0, 0)
    found = pdf(drawing, title="A (pair)")
    assert found.startswith(b"%PDF-") and len(re.findall(rb"/Type\s*/Page\b", found)) == 1
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", found, flags=re.DOTALL)
    drawn = b"".join(inflated(stream) for stream in streams)
    assert b"BT" in drawn, "no text"
    assert b"/Subtype/Image" not in found
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', drawing)
    width, height = map(float, re.search(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", found + drawn).groups())
    assert abs(width / height - int(size[1]) / int(size[2])) < 0.01


def test_equal_drawings_are_equal_files():
    assert pdf(head_svg(PICTURE, 0, 0), title="t") == pdf(head_svg(PICTURE, 0, 0), title="t")


def inflated(stream):
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""
