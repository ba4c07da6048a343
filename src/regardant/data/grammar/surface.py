"""The last pass: from marked words to the text of a sentence.

This pass removes the marks of the tables (see `lexicon`), elides, contracts, capitalises and spaces. French punctuation
is set like English, with no space before a question mark.
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from regardant.data.grammar import english, french

ENGLISH_VOWELS = english.VOWELS
FRENCH_VOWELS = french.VOWELS
CONTRACTIONS = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
CLOSING = (".", "?", ",")


class Marked(NamedTuple):
    """A word as the tables write it, and the bits of the meanings it carries: words that share one are linked."""

    text: str
    meaning: int


def english_text(sentence: list[Marked]) -> tuple[str, list[int]]:
    """Return the text, and the meaning of each of its words."""
    return write(settle(sentence, ENGLISH_VOWELS))


def french_text(sentence: list[Marked]) -> tuple[str, list[int]]:
    """Return the text, and the meaning of each of its words: a contraction has the meanings of both its parts."""
    return write(contract(settle(sentence, FRENCH_VOWELS), CONTRACTIONS))


def settle(sentence: list[Marked], vowels: str) -> list[Marked]:
    """Return the words, each in the form that the sound after it requires."""
    settled = []
    vowel_follows = False
    for text, meaning in reversed(sentence):
        plain, before_vowel, begins_with_vowel = unmark(text, vowels)
        settled.append(Marked(before_vowel if vowel_follows else plain, meaning))
        vowel_follows = begins_with_vowel
    settled.reverse()
    return settled


@cache
def unmark(text: str, vowels: str) -> tuple[str, str, bool]:
    """Return the form before a consonant, the form before a vowel sound, and whether it begins with a vowel sound."""
    unlike_spelling = text.startswith("*")
    plain, _, before_vowel = text.lstrip("*").partition("|")
    begins_with_vowel = (plain[0].lower() in vowels) != unlike_spelling
    return plain, before_vowel or plain, begins_with_vowel


def contract(sentence: list[Marked], contractions: Mapping[tuple[str, str], str]) -> list[Marked]:
    contracted: list[Marked] = []
    for word in sentence:
        if contracted and (joined := contractions.get((contracted[-1].text, word.text))):
            contracted[-1] = Marked(joined, contracted[-1].meaning | word.meaning)
        else:
            contracted.append(word)
    return contracted


def write(sentence: list[Marked]) -> tuple[str, list[int]]:
    text = ""
    for word in sentence:
        tight = not text or text.endswith("'") or word.text in CLOSING
        text += word.text if tight else f" {word.text}"
    return text[0].upper() + text[1:], [word.meaning for word in sentence]
