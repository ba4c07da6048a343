"""Items with a label each; and the source of such items that reads tables of texts."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Literal

from pydantic import Field

from regardant.config import Variants
from regardant.data.tables import read_table
from regardant.data.text_files import Fault, place
from regardant.errors import DataError

Labelled = tuple[Any, str]
"""An item and its label."""

Sets = dict[str, list[Labelled]]
"""Labelled items by split: train, validation, test."""


class LabelledConfig(Variants):
    """Configuration of a source of labelled items. A subclass with a `kind` adds one."""

    default_kind: ClassVar[str] = "table"

    validation_share: float = Field(0.1, gt=0, lt=1)
    """Share of the training items to validate on, where no validation set is given."""

    def read(self, seed: int) -> Sets:
        """Return the items of all splits. Raises DataError."""
        raise NotImplementedError

    def given(self, data: Path) -> list[Labelled]:
        """Return the labelled items of a file or folder that a command line names, read as those of the recipe.

        Raises DataError, also where items come from no files.
        """
        raise DataError(f"--data {data}: this run's items come from {self.kind}: leave --data out")

    def split_off(self, items: list[Labelled], seed: int, names: Mapping[str, float]) -> Sets:
        """Return the items shuffled by the seed, a share of them under each name and the others under `train`."""
        shuffled = list(items)
        Random(seed).shuffle(shuffled)
        sets: Sets = {}
        for name, share in names.items():
            count = max(1, round(share * len(items)))
            sets[name], shuffled = shuffled[:count], shuffled[count:]
        if not shuffled:
            raise DataError(f"{len(items)} items are too few to split: give more")
        return {"train": shuffled, **sets}


class TableConfig(LabelledConfig):
    """Texts with labels from .tsv, .csv, .jsonl or .parquet tables."""

    kind: Literal["table"] = "table"

    source: str
    """The table to train on."""

    validation: str | None = None
    """The table to validate on. Empty: a share of the training items."""

    test: str | None = None
    """The table to test on. Empty: tests are on the validation items."""

    root: str = ""
    """The folder that relative paths start from; the current one if empty."""

    text: str = "text"
    """The column of texts; its number, from 1, in a table without names."""

    label: str = "label"
    """The column of labels; its number, from 1, in a table without names."""

    def read(self, seed: int) -> Sets:
        train = list(self.items(self.source))
        sets = {"train": train}
        if self.validation is None:
            sets = self.split_off(train, seed, {"validation": self.validation_share})
        for name, table in (("validation", self.validation), ("test", self.test)):
            if table is not None:
                sets[name] = list(self.items(table))
        return sets

    def given(self, data: Path) -> list[Labelled]:
        return list(self.model_copy(update={"root": ""}).items(str(data.resolve())))

    def items(self, table: str) -> Iterator[Labelled]:
        """Return the labelled texts of a table; blank ones are left out. Raises DataError."""
        path = place(self.root, table)
        for record in read_table(path, self.text, self.label):
            text, label = record.source, record.target
            if isinstance(text, Fault) or isinstance(label, Fault):
                raise DataError(f"{path} line {record.line}: cannot be read: mend the line or leave it out")
            if text.strip() and label.strip():
                yield text, label.strip()
