"""Texts without labels, one an item: lines of text files, columns of tables, sentences of treebanks."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from pydantic import Field

from regardant.config import Config
from regardant.data.tables import is_table_file, read_table
from regardant.data.text_files import Fault, place, read_lines
from regardant.data.treebank import read_treebank
from regardant.errors import DataError


class LinesConfig(Config):
    """Texts from files: a line an item, or a row of a table (.tsv, .csv, .jsonl, .parquet), or a sentence of a
    treebank (.conllu) with spaces between its words. Files may end in .gz or .zst."""

    source: str | tuple[str, ...]
    """The file to train on, or several: source=[a.txt, b.tsv]."""

    validation: str | None = None
    """The file to validate on. Empty: a share of the training items."""

    test: str | None = None
    """The file to test on. Empty: tests are on the validation items."""

    root: str = ""
    """The folder that relative paths start from; the current one if empty."""

    text: str = "text"
    """The column of texts in tables; its number, from 1, in a table without names."""

    validation_share: float = Field(0.05, gt=0, lt=1)
    """Share of the training items to validate on, where no validation file is given."""

    def read(self, seed: int) -> dict[str, list[str]]:
        """Return the texts of all splits. Raises DataError."""
        sources: Sequence[str] = [self.source] if isinstance(self.source, str) else self.source
        train = [text for file in sources for text in self.items(file)]
        sets = {"train": train}
        if self.validation is None:
            Random(seed).shuffle(train)
            count = max(1, round(self.validation_share * len(train)))
            sets = {"train": train[count:], "validation": train[:count]}
        for name, file in (("validation", self.validation), ("test", self.test)):
            if file is not None:
                sets[name] = list(self.items(file))
        for name, texts in sets.items():
            if not texts:
                raise DataError(f"no text to {VERBS[name]} is left of {', '.join(sources)}: give more")
        return sets

    def items(self, file: str) -> Iterator[str]:
        """Yield the texts of a file; blank ones are left out. Raises DataError."""
        path = place(self.root, file)
        return (text for text in self._texts(path) if text.strip())

    def _texts(self, path: Path) -> Iterator[str]:
        if ".conllu" in path.suffixes:
            yield from (" ".join(sentence.words) for sentence in read_treebank(path))
        elif is_table_file(path):
            for record in read_table(path, self.text, self.text):
                if isinstance(record.source, Fault):
                    raise DataError(f"{path} line {record.line}: cannot be read: mend the line or leave it out")
                yield record.source
        else:
            yield from read_lines(path)


VERBS = {"train": "train on", "validation": "validate on", "test": "test on"}
"""The use of a split, for messages."""
