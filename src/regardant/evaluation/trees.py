"""Scores of trees in brackets, such as "(S (NP a cat) (VP sleeps))".

A tree is a bracket with a label, directly behind its opening, and at least one word in it. The closing bracket may
repeat the label: ")NP".

Bracket F1 is PARSEVAL: Black et al. 1991, "A procedure for quantitatively comparing the syntactic coverage of English
grammars", https://aclanthology.org/H91-1060. Every bracket counts, by its label and its span of words: a part of speech
in brackets of its own counts too.
"""

import re
from collections import Counter
from collections.abc import Sequence

from regardant.errors import DataError

Bracket = tuple[str, int, int]
"""(label, first word, word after the last)."""

PIECES = re.compile(r"[()][^\s()]*|[^\s()]+")
"""An opening or a closing bracket with its label, or a word."""


def brackets(text: str) -> Counter[Bracket] | None:
    """Return the count of each bracket in a tree. None: the text is not one tree."""
    opened: list[tuple[str, int]] = []
    found: Counter[Bracket] = Counter()
    words = 0
    for number, piece in enumerate(PIECES.findall(text)):
        kind, label = piece[0], piece[1:]
        if kind == "(":
            if not label or (number and not opened):
                return None
            opened.append((label, words))
        elif not opened:
            return None
        elif kind == ")":
            name, start = opened.pop()
            if label not in ("", name) or start == words:
                return None
            found[name, start, words] += 1
        else:
            words += 1
    return found if found and not opened else None


def bracket_f1(texts: Sequence[str], references: Sequence[str]) -> float:
    """Return the micro-averaged F1 of labelled brackets, from 0 to 1. A text that is no tree has no bracket.

    Raises DataError for a reference that is no tree.
    """
    require_trees(references)
    both = either = 0
    for text, reference in zip(texts, references, strict=True):
        given, gold = brackets(text) or Counter(), brackets(reference) or Counter()
        both, either = both + (given & gold).total(), either + given.total() + gold.total()
    return 2 * both / either


def well_formed(texts: Sequence[str]) -> float:
    """Return the share of texts that are one tree, from 0 to 1."""
    return sum(brackets(text) is not None for text in texts) / len(texts)


def require_trees(references: Sequence[str]) -> None:
    """Raise DataError for a reference that is no tree."""
    for reference in references:
        if brackets(reference) is None:
            raise DataError(
                f"the text {reference!r} is no tree in brackets: give one such as '(S (NP a cat) (VP sleeps))', or "
                "leave bracket_f1 out of evaluation.metrics"
            )
