"""Texts with a label for each word: treebanks in CoNLL-U, and files with one word per line.

The second format is that of the CoNLL shared tasks, https://www.clips.uantwerpen.be/conll2003/ner/: columns, the word
in the first and its label in the last, and a blank line after each sentence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, field_validator

from regardant.data.splits import FilesConfig
from regardant.data.text_files import place, read_lines
from regardant.data.treebank import FORM, RELATION, UPOS, XPOS, read_treebank_rows
from regardant.errors import DataError

TREEBANK_COLUMNS = {"upos": UPOS, "xpos": XPOS, "deprel": RELATION}
"""Columns of a treebank that label words."""

UNSPECIFIED = "_"
"""Treebank cell without a value."""

DOCUMENT = "-DOCSTART-"
"""Prefix of a line that begins a document."""


@dataclass
class TaggedText:
    """The words of a text, each with its label."""

    words: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    """Number of each word's line in its file, from 1."""
    path: Path = Path()
    """File of the text."""

    def append(self, word: str, label: str, line: int) -> None:
        """Add a word."""
        self.words.append(word)
        self.labels.append(label)
        self.lines.append(line)


class TaggedConfig(FilesConfig):
    """Texts with a label for each word, from a treebank (.conllu) or a file with one word per line and a blank line
    after each text. In the latter, lines with # before a text are comments. Files may end in .gz or .zst."""

    label: str | None = None
    """The column of labels: upos, xpos or deprel of a treebank (upos if empty), or the number of the column, from 1, in
    any other file (the last one if empty)."""

    word: int = Field(1, gt=0)
    """The column of words, from 1, in a file that is no treebank."""

    validation_share: float = Field(0.1, gt=0, lt=1)
    """Share of the training texts to validate on, where no validation file is given."""

    @field_validator("label")
    @classmethod
    def label_is_a_column(cls, label: str | None) -> str | None:
        """Refuse a value that is neither a treebank column nor a number from 1."""
        if label is not None and label not in TREEBANK_COLUMNS and not (label.isdecimal() and int(label)):
            raise ValueError(f"given {label!r}; allowed: {', '.join(TREEBANK_COLUMNS)}, or a number from 1")
        return label

    def read(self, seed: int) -> dict[str, list[TaggedText]]:
        """Return the texts of all splits. Raises DataError."""
        return self.sets(self.items, lambda text: tuple(text.words), self.validation_share, seed)

    def items(self, file: str) -> Iterator[TaggedText]:
        """Yield the texts of a file. Raises DataError."""
        path = place(self.root, file)
        return self._of_treebank(path) if ".conllu" in path.suffixes else self._of_columns(path)

    def _of_treebank(self, path: Path) -> Iterator[TaggedText]:
        name = self.label or "upos"
        if name not in TREEBANK_COLUMNS:
            raise DataError(f"{path} is a treebank, and data.label is {name!r}: give {', '.join(TREEBANK_COLUMNS)}")
        for rows in read_treebank_rows(path):
            text = TaggedText(path=path)
            for row in (row for row in rows if row.is_word):
                word, label = row.cells[FORM], row.cells[TREEBANK_COLUMNS[name]]
                if not word.strip():
                    raise DataError(f"{path} line {row.number:,} has a blank word: write the word in column {FORM + 1}")
                if label in (UNSPECIFIED, ""):
                    raise DataError(f"{path} line {row.number:,}: {word!r} has no {name}: give one, or set data.label")
                text.append(word, label, row.number)
            if text.words:
                yield text

    def _of_columns(self, path: Path) -> Iterator[TaggedText]:
        if self.label in TREEBANK_COLUMNS:
            raise DataError(
                f"{path} is not a treebank (.conllu), and data.label is {self.label!r}: give a column number"
            )
        text, width = TaggedText(path=path), 0
        for number, line in enumerate(read_lines(path), 1):
            if line.startswith(DOCUMENT) or (not text.words and _is_comment(line)):
                continue
            if not line.strip():
                if text.words:
                    yield text
                    text = TaggedText(path=path)
                continue
            cells = line.split("\t") if "\t" in line else line.split()
            width = width or len(cells)
            if len(cells) != width:
                raise DataError(f"{path} line {number:,} has {len(cells)} columns, others {width}: correct the line")
            text.append(*self._word(cells, path, number), number)
        if text.words:
            yield text

    def _word(self, cells: Sequence[str], path: Path, line: int) -> tuple[str, str]:
        """Return the word of a line and its label."""
        columns = {"data.word": self.word, "data.label": int(self.label or len(cells))}
        for name, column in columns.items():
            if column > len(cells):
                raise DataError(f"{path} line {line:,} has {len(cells)} columns: set {name} ({column}) to one of them")
            if not cells[column - 1].strip():
                raise DataError(f"{path} line {line:,} is blank in column {column}: correct the line")
        if len(set(columns.values())) < len(columns):
            raise DataError(
                f"{path} line {line:,}: column {self.word} is data.word and data.label: add a column of labels"
            )
        word, label = (cells[column - 1].strip() for column in columns.values())
        return word, label


def _is_comment(line: str) -> bool:
    """Return whether a line before the first word of a text is a comment, and not the word # followed by a tab."""
    return line.startswith("#") and "\t" not in line
