"""What every drawing here is made of: words that stay words, cut to a length, and how wide they come out."""

import re
import unicodedata

from regardant.pictures import markup

FONT_SIZE = 14
LONGEST_LABEL = 18

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """Text between the tags of a drawing and in its attributes, without the characters that XML lacks."""
    return markup.escaped(NOT_XML.sub("\ufffd", text))


def shorten(word: str, longest: int = LONGEST_LABEL) -> str:
    """At most so many characters, the last one an ellipsis where some are missing."""
    return word if len(word) <= longest else word[: longest - 1] + "…"


def text_width(text: str) -> float:
    """Pixels at FONT_SIZE, guessed from the script: whoever opens the file brings the font."""
    return FONT_SIZE * sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.58 for c in text)
