"""Text to words: the splitter that defines word indices in alignments, for English and French alike.

White space separates. An elided French form keeps its apostrophe and ends there (s'est: s', est; l'homme: l', homme;
qu'il: qu', il); every other apostrophe stays inside its word (aujourd'hui, don't, O'Brien), typewritten or typographic.
Letters, digits, hyphens and inner apostrophes make one word (est-ce, Pays-Bas, 1992), and a point or a comma between
two digits belongs to its number (3.5). Any other sign stands alone.
"""

import re
from dataclasses import dataclass

LETTER = r"[\w\u0300-\u036f]"  # with the combining accents of decomposed text
ELIDED = rf"\b(?:[cdjlmnst]|{LETTER}*qu)['’](?={LETTER})"
WORD = rf"{LETTER}+(?:[-'’]{LETTER}+|(?<=\d)[.,](?=\d){LETTER}+)*"
TOKEN = re.compile(rf"{ELIDED}|{WORD}|\S", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Word:
    """One word and its span: `text == whole[start:end]`."""

    text: str
    start: int
    end: int


def words(text: str) -> list[Word]:
    """Return the words of a text, in order. Only white space lies between them."""
    return [Word(match.group(), *match.span()) for match in TOKEN.finditer(text)]


def word_texts(text: str) -> list[str]:
    """Return the words of a text without their spans, for long texts."""
    return TOKEN.findall(text)
