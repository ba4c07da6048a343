"""Pairs of two items that belong together, each of a kind of its own: from tables with a column for each."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from regardant.config import Variants
from regardant.data.item_files import content_key
from regardant.data.splits import FilesConfig
from regardant.data.tables import read_columns
from regardant.data.text_files import Fault, place, unreadable_cell


class ItemPair(NamedTuple):
    """Two items that belong together."""

    first: Any
    """A text, the path of a file, or the content of one."""
    second: Any
    """Second item, in one of the same forms."""
    label: str | None = None
    """Class of both. None: the pairs have no classes."""


class ItemPairsConfig(Variants):
    """Configuration of a source of pairs. A subclass with a `kind` adds one."""

    default_kind: ClassVar[str] = "table"

    validation_share: float = Field(0.1, gt=0, lt=1)
    """Share of the training pairs to validate on, where no validation set is given."""

    prompts: Mapping[str, str] = {}
    """A second item for each label, by which first items are classified, as {cat: a photo of a cat}. Empty: first items
    are compared with the distinct second items of all training pairs."""

    def read(self, seed: int, *, files: tuple[bool, bool]) -> dict[str, list[ItemPair]]:
        """Return the pairs of all splits. `files` says which of the two items are files. Raises DataError."""
        raise NotImplementedError

    def log_left_out(self, log: Callable[[str], None]) -> None:
        """Write to the log how many pairs are left out, if any are."""


class PairTableConfig(FilesConfig, ItemPairsConfig):
    """Pairs from .tsv, .csv, .jsonl or .parquet tables. A cell is a text, or the path of a file beside the table."""

    kind: Literal["table"] = "table"

    first: str = "first"
    """The column of first items; its number, from 1, in a table without names."""

    second: str = "second"
    """The column of second items, likewise."""

    label: str | None = None
    """The column of classes, likewise. Empty: the pairs have no classes."""

    def read(self, seed: int, *, files: tuple[bool, bool]) -> dict[str, list[ItemPair]]:
        def group_of(pair: ItemPair) -> Hashable:
            return content_key(Path(pair.first)) if files[0] else pair.first

        return self.sets(lambda table: self.items(table, files), group_of, self.validation_share, seed)

    def items(self, table: str, files: tuple[bool, bool]) -> Iterator[ItemPair]:
        """Yield the pairs of a table; those with a blank cell are left out. Raises DataError."""
        path = place(self.root, table)
        for _, texts in self._rows(path):
            if all(texts):
                items = [
                    str(path.parent / text) if is_file else text for text, is_file in zip(texts, files, strict=False)
                ]
                yield ItemPair(*items, *texts[2:])

    def log_left_out(self, log: Callable[[str], None]) -> None:
        for table in filter(None, (self.source, self.validation, self.test)):
            path = place(self.root, table)
            if blank := [line for line, texts in self._rows(path) if not all(texts)]:
                log(f"{path.name}: rows with a blank cell are left out: {len(blank):,}, first at line {blank[0]:,}")

    def _rows(self, path: Path) -> Iterator[tuple[int, list[str]]]:
        """Yield the number and the cells of each row. Raises DataError for a cell that cannot be read."""
        labels = [self.label] if self.label else []
        for line, cells in read_columns(path, [self.first, self.second, *labels], labels):
            texts = [cell.strip() for cell in cells if not isinstance(cell, Fault)]
            if len(texts) < len(cells):
                raise unreadable_cell(path, line, *cells)
            yield line, texts
