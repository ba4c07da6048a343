"""Sentences with their dependency trees, read from a treebank in CoNLL-U.

The format is that of Universal Dependencies, https://universaldependencies.org/format.html. The text is joined from the
forms, so that every word has a span in it; the words of a contraction that is not their concatenation (French `du`, of
`de` and `le`) all have the contraction's span.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

from regardant.data.text_files import read_lines
from regardant.errors import DataError

ROOT = -1
"""Governor of a word that has none."""

CONTRACTION_OR_EMPTY = re.compile(r"(\d+)-(\d+)|\d+\.\d+", re.ASCII)
"""Pattern of the id of a contraction or an empty node."""

COLUMNS = 10
FORM, UPOS, XPOS, GOVERNOR, RELATION, MISC = 1, 3, 4, 6, 7, 9


@dataclass(frozen=True)
class TreebankRow:
    """A line of a treebank that is no comment: a word, a contraction (1-2) or an empty node (8.1)."""

    number: int
    """Number of the line, from 1."""
    cells: list[str]

    @property
    def is_word(self) -> bool:
        """True for a word, False for a contraction or an empty node."""
        return self.cells[0].isdigit()


@dataclass
class ParsedSentence:
    """Words of a sentence, with the governor of each."""

    text: str = ""
    words: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Span of each word in the text: (start, end) in characters."""
    governors: list[int] = field(default_factory=list)
    """Index of the governor of each word, from 0; ROOT for a word without one."""
    relations: list[str] = field(default_factory=list)
    """Relation of each word to its governor: nsubj, obj, ..."""


def read_treebank_rows(path: Path) -> Iterator[list[TreebankRow]]:
    """Yield the rows of each sentence of a .conllu file, plain, .gz or .zst. Raises DataError for any other file, and
    for words that are not numbered from 1 on."""
    rows: list[TreebankRow] = []
    for number, line in enumerate(read_lines(path), 1):
        if line.strip() and not line.startswith("#"):
            rows.append(_row(line, path, number))
        elif not line.strip() and rows:
            yield _numbered(rows, path)
            rows = []
    if rows:
        yield _numbered(rows, path)


def read_treebank(path: Path) -> Iterator[ParsedSentence]:
    """Yield the sentences of a .conllu file, plain, .gz or .zst. Raises DataError for any other file."""
    for rows in read_treebank_rows(path):
        if any(row.is_word for row in rows):
            yield _sentence(rows, path)


def _sentence(rows: list[TreebankRow], path: Path) -> ParsedSentence:
    words = [row for row in rows if row.is_word]
    sentence = ParsedSentence(relations=[row.cells[RELATION] for row in words])
    for row in rows:
        first, _, last = row.cells[0].partition("-")
        form = row.cells[FORM]
        if last:
            parts = [word.cells[FORM] for word in words[int(first) - 1 : int(last)]]
        elif first.isdigit() and int(first) > len(sentence.spans):
            parts = [form]
        else:  # a word of a contraction, already added; or an empty node (8.1), which is not in the text
            continue
        sentence.spans += _places(form, parts, len(sentence.text))
        sentence.words += parts
        sentence.text += form if "SpaceAfter=No" in row.cells[MISC].split("|") else f"{form} "
    places = {str(number): number - 1 if number else ROOT for number in range(len(words) + 1)}
    sentence.governors = [_governor(row, places, path) for row in words]
    sentence.text = sentence.text.rstrip(" ")
    return sentence


def _row(line: str, path: Path, number: int) -> TreebankRow:
    cells = line.split("\t")
    if len(cells) != COLUMNS:
        raise DataError(
            f"{path} line {number:,} has {len(cells)} tab-separated columns, CoNLL-U has {COLUMNS}: give a treebank"
        )
    return TreebankRow(number, cells)


def _numbered(rows: list[TreebankRow], path: Path) -> list[TreebankRow]:
    """Return the rows of a sentence. Raises DataError unless its words are numbered from 1 on and each contraction
    stands before its words."""
    count, covered = 0, 0
    numbers = {str(number): number for number in range(1, sum(row.is_word for row in rows) + 1)}
    for row in rows:
        given = row.cells[0]
        if row.is_word:
            count += 1
            if numbers.get(given) != count:
                raise DataError(
                    f"{path} line {row.number:,}: the id is {given!r} and not {count}: number the words of a sentence "
                    "from 1 on, and leave a line blank between two sentences"
                )
        elif (found := CONTRACTION_OR_EMPTY.fullmatch(given)) is None:
            raise DataError(
                f"{path} line {row.number:,}: the id is {given!r}: write a word's as 3, a contraction's as 3-4, an "
                "empty node's as 3.1"
            )
        elif found[1]:
            first, last = numbers.get(found[1], 0), numbers.get(found[2], 0)
            if first != count + 1 or last < first or first <= covered:
                raise DataError(
                    f"{path} line {row.number:,}: the contraction {given} stands before word {count + 1} of "
                    f"{len(numbers)}: write the numbers of its first and its last word, and its words after it"
                )
            covered = last
    return rows


def _governor(row: TreebankRow, places: Mapping[str, int], path: Path) -> int:
    given = row.cells[GOVERNOR]
    if given not in places:
        raise DataError(
            f"{path} line {row.number:,}: the governor is {given!r}: give the number of one of the {len(places) - 1} "
            "words, or 0 for none"
        )
    return places[given]


def _places(form: str, parts: list[str], start: int) -> list[tuple[int, int]]:
    """Return the span of each word of a form: consecutive if their concatenation is the form, else that of the form."""
    if "".join(parts) != form:
        return [(start, start + len(form))] * len(parts)
    ends = list(accumulate(map(len, parts), initial=start))
    return list(pairwise(ends))
