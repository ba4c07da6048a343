"""Similarity of a query and lines of text: the cosine between TF-IDF vectors.

Inverse document frequency as in Manning, Raghavan and Schütze 2008, "Introduction to Information Retrieval", section
6.2, smoothed so that a term of every line still counts.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal
from zlib import crc32

MOST_LINES = 5000
MOST_LETTERS = 2000
MOST_LETTERS_OF_ALL = 200_000
"""Largest number of characters of all lines together, which take a second."""

WORD = re.compile(r"\w+")
STRETCHES = (2, 3, 4)
"""Lengths of character n-grams."""
BUCKETS = 1 << 16
"""Number of hashes of n-grams: two n-grams rarely share one."""


def similarities(query: str, lines: Sequence[str], by: Literal["words", "letters"]) -> list[float]:
    """Return the cosine of the query with each line, 0 if they share nothing."""
    count = COUNTS[by]
    counted = [count(line) for line in lines]
    found_in = Counter(feature for one in counted for feature in one)

    def weighed(one: Counter[str] | Counter[int]) -> dict[str | int, float]:
        return {of: number * (1 + math.log((1 + len(lines)) / (1 + found_in[of]))) for of, number in one.items()}

    asked = weighed(count(query))
    return [_cosine(asked, weighed(one)) for one in counted]


def words(text: str) -> Counter[str]:
    """Return counts of the words of a text, in lower case."""
    return Counter(WORD.findall(text.lower()))


def letters(text: str) -> Counter[int]:
    """Return counts of the hashed character n-grams of the words of a text, with ^ and $ as the ends of a word."""
    stretches = (
        f"^{word}$"[start : start + length]
        for word in WORD.findall(text.lower())
        for length in STRETCHES
        for start in range(len(word) + 3 - length)
    )
    return Counter(crc32(stretch.encode()) % BUCKETS for stretch in stretches)


COUNTS: dict[str, Callable[[str], Counter[str] | Counter[int]]] = {"words": words, "letters": letters}


def _cosine(a: dict[str | int, float], b: dict[str | int, float]) -> float:
    lengths = math.hypot(*a.values()) * math.hypot(*b.values())
    return sum(number * b.get(of, 0.0) for of, number in a.items()) / lengths if lengths else 0.0
