"""Texts without labels, one per item: lines of text files, rows of tables, sentences of treebanks."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field

from regardant.config import Config
from regardant.data.splits import read_sets
from regardant.data.tables import is_table_file, read_table
from regardant.data.text_files import Fault, place, read_lines, unreadable_cell
from regardant.data.treebank import read_treebank


class LinesConfig(Config):
    """Texts from files: one item per line, per row of a table (.tsv, .csv, .jsonl, .parquet), or per sentence of a
    treebank (.conllu), with spaces between its words. Files may end in .gz or .zst."""

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
        return read_sets(
            self.items,
            sources,
            key=str,
            validation=self.validation,
            test=self.test,
            share=self.validation_share,
            seed=seed,
        )

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
                    raise unreadable_cell(path, record.line, record.source)
                yield record.source
        else:
            yield from read_lines(path)
