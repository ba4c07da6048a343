"""Attention explained as retrieval: libraries, students, fuzzy keys, and weights drawn under words."""

from collections import Counter
from difflib import SequenceMatcher
from math import sqrt
from typing import Any

from torch import Tensor

from regardant.checks.verify.check import COURSE, Attend, Claim
from regardant.checks.verify.mechanisms import exactly, identity

LIBRARY = exactly([0.1, 0.9, 0.5])
STUDENTS = exactly([0.95, 0.1, 0.3, 0.9])
RECORDS = (("Alice", "CS", 3.9), ("Bob", "Math", 3.8), ("Carol", "CS", 3.2), ("Dave", "CS", 3.7))


@Claim(
    "N-10",
    "Similarities used as weights",
    COURSE,
    lecture={"library": "0.1 0.9 0.5", "students": "0.95 0.1 0.3 0.9"},
    true={
        "sums": "1.50 2.25",
        "library, divided by the sum": "0.0667 0.6000 0.3333",
        "students, divided by the sum": "0.4222 0.0444 0.1333 0.4000",
        "library, softmax": "0.2120 0.4718 0.3162",
        "students, softmax": "0.3447 0.1473 0.1800 0.3279",
        "library, softmax at temperature .1": "0.0003 0.9817 0.0180",
        "students, softmax at temperature .1": "0.6218 0.0001 0.0009 0.3771",
        "best book": "2",
        "computer scientists above 3.5": "Alice Dave",
    },
    verdict="wrong",
    note="The similarities sum to 1.5 and 2.25, so they are no attention weights: divide by the sum or take a softmax.",
).attended
def similarities_as_weights(attend: Attend) -> dict[str, Any]:
    def softmax(scores: Tensor, temperature: float = 1.0) -> Tensor:
        return attend(exactly([[1 / temperature]]), scores[:, None], identity(len(scores)))[0]

    return {
        "sums": [LIBRARY.sum(), STUDENTS.sum()],
        "library, divided by the sum": LIBRARY / LIBRARY.sum(),
        "students, divided by the sum": STUDENTS / STUDENTS.sum(),
        "library, softmax": softmax(LIBRARY),
        "students, softmax": softmax(STUDENTS),
        "library, softmax at temperature .1": softmax(LIBRARY, 0.1),
        "students, softmax at temperature .1": softmax(STUDENTS, 0.1),
        "best book": int(softmax(LIBRARY).argmax()) + 1,
        "computer scientists above 3.5": [name for name, field, grade in RECORDS if field == "CS" and grade > 3.5],
    }


@Claim(
    "N-11",
    "A soft dictionary: ct, catt, dog",
    COURSE,
    lecture="fuzzy queries find their key",
    true={
        "best keys": "cat cat dog",
        "similarity, difflib": "0.800 0.857 1.000",
        "similarity, pairs of letters": "0.577 0.894 1.000",
        "dog and bird, difflib": "0.286",
        "dog and bird, pairs of letters": "0.000",
    },
    verdict="right",
    note="The lecture leaves the similarity open; two are computed here.",
).measured
def soft_dictionary() -> dict[str, Any]:
    queries = ("ct", "catt", "dog")
    best = [_best_key(query) for query in queries]
    return {
        "best keys": best,
        "similarity, difflib": [_matching(query, key) for query, key in zip(queries, best, strict=True)],
        "similarity, pairs of letters": [_pairs_cosine(query, key) for query, key in zip(queries, best, strict=True)],
        "dog and bird, difflib": _matching("dog", "bird"),
        "dog and bird, pairs of letters": _pairs_cosine("dog", "bird"),
    }


def _best_key(query: str) -> str:
    return max(("cat", "dog", "bird"), key=lambda key: _matching(query, key))


def _matching(query: str, key: str) -> float:
    return SequenceMatcher(None, query, key).ratio()


def _pairs_cosine(query: str, key: str) -> float:
    """Return the cosine similarity of letter bigram counts, where the ends of a word count as letters."""
    counts = [Counter(zip(f"^{word}", f"{word}$", strict=True)) for word in (query, key)]
    lengths = [sqrt(sum(number * number for number in count.values())) for count in counts]
    return sum(counts[0][pair] * counts[1][pair] for pair in counts[0]) / (lengths[0] * lengths[1])


@Claim(
    "N-16",
    "Weights while “chat” is written",
    COURSE,
    lecture={"sums": "1 1", "place of cat": "0", "words of the French sentence": "6"},
    true={"sums": "1.00 1.00", "place of cat": "1", "words of the French sentence": "7"},
    verdict="partly",
    note="Both lists sum to one. The second belongs to the six English words, where cat is second; it is drawn under "
    "the French ones, which are seven.",
).measured
def weights_under_words() -> dict[str, Any]:
    english = ["The", "cat", "sat", "on", "the", "mat"]
    french = ["Le", "chat", "s'est", "assis", "sur", "le", "tapis"]
    return {
        "sums": [sum((0.1, 0.8, 0.1)), sum((0.8, 0.15, 0.02, 0.01, 0.01, 0.01))],
        "place of cat": english.index("cat"),
        "words of the French sentence": len(french),
    }


@Claim(
    "N-18",
    "Routing .1, .3 and .6 of three values",
    COURSE,
    lecture="1",
    true="1.0",
    verdict="right",
    note="The sum of the lecture's three numbers.",
).measured
def routing() -> float:
    return sum((0.1, 0.3, 0.6))
