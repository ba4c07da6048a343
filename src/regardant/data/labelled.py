"""Labelled items, and their source from tables of texts."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from regardant.config import Variants
from regardant.data.columns import find_columns
from regardant.data.splits import FilesConfig, grouped, split_at_random
from regardant.data.tables import read_table
from regardant.data.text_files import Fault, PairRecord, place, unreadable_cell
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

    def chosen(self, log: Callable[[str], None]) -> Self:
        """Return the configuration with its unset fields chosen from the data. Raises DataError."""
        return self

    def read(self, seed: int) -> Sets:
        """Return the items of all splits. Raises DataError."""
        raise NotImplementedError

    def given(self, data: Path) -> list[Labelled]:
        """Return the labelled items of a file or folder given as --data, read with the settings of the recipe.

        Raises DataError, also for a kind that reads no files.
        """
        raise DataError(f"--data {data}: this run's items come from {self.kind}: leave --data out")

    def validates_on_share(self) -> bool:
        """Return whether a random share of the training items is validated on, of all items of one label too."""
        return False

    def group_of(self, labelled: Labelled) -> Hashable:
        """Return the key of an item: a random split has items of one key in one split."""
        return id(labelled[0])

    def split_off(self, items: list[Labelled], seed: int) -> Sets:
        """Return the items shuffled by the seed: `validation_share` of them to validate on, the others to train on.

        Raises DataError if none are left to train on.
        """
        sets = split_at_random(items, self.group_of, self.validation_share, seed)
        if not sets["train"]:
            raise DataError(f"{len(items)} items are too few to split, or all equal: give more")
        return sets


class TableConfig(FilesConfig, LabelledConfig):
    """Texts with labels from .tsv, .csv, .jsonl or .parquet tables."""

    kind: Literal["table"] = "table"

    text: str | None = None
    """The column of texts; its number, from 1, in a table without names. Empty: found by its name or its cells."""

    label: str | None = None
    """The column of labels; its number, from 1, in a table without names. Empty: found by its name or its cells."""

    def chosen(self, log: Callable[[str], None]) -> Self:
        path = place(self.root, self.source)
        text, label = find_columns(path, self.text, self.label)
        log(f"{path.name}: texts in column {text}, labels in column {label}")
        blank = [record.line for record in read_table(path, text, label, numbers=[label]) if _is_blank(record)]
        if blank:
            log(f"rows without a text or a label are left out: {len(blank):,}, first at line {blank[0]:,}")
        return self.model_copy(update={"text": text, "label": label})

    def read(self, seed: int) -> Sets:
        return self.sets(self.items, self.group_of, self.validation_share, seed)

    def group_of(self, labelled: Labelled) -> Hashable:
        return labelled[0]

    def given(self, data: Path) -> list[Labelled]:
        return list(self.items(str(data.resolve())))

    def items(self, table: str) -> Iterator[Labelled]:
        """Yield the labelled texts of a table; blank ones are left out. Raises DataError."""
        path = place(self.root, table)
        columns = find_columns(path, self.text, self.label)
        for record in read_table(path, *columns, numbers=[columns.label]):
            text, label = record.source, record.target
            if _is_blank(record):
                continue
            if isinstance(text, Fault) or isinstance(label, Fault):
                raise unreadable_cell(path, record.line, text, label)
            yield text, label.strip()


def train_all_labels(sets: Sets, group_of: Callable[[Labelled], Hashable]) -> Sets:
    """Return the splits with items of every validated label in training, unchanged if they are so.

    Groups of validation items with other labels are exchanged for training groups whose labels are in further training
    items. Raises DataError if no item is left to validate on.
    """
    counts = Counter(label for _, label in sets["train"])
    if all(label in counts for _, label in sets["validation"]):  # before items are grouped, which may read their files
        return sets
    train, validation = (grouped(sets[name], group_of) for name in ("train", "validation"))
    missing = [group for group in validation if not all(label in counts for _, label in group)]
    kept = [group for group in validation if all(label in counts for _, label in group)]
    trained = []
    for group in train:
        own = Counter(label for _, label in group)
        if len(kept) < len(validation) and all(counts[label] > count for label, count in own.items()):
            counts.subtract(own)
            kept.append(group)
        else:
            trained.append(group)
    if not kept:
        raise DataError(
            "no label is in two different items, so none can be validated on: give more items of each label"
        )
    parts = {"train": trained + missing, "validation": kept}
    return sets | {name: [item for group in part for item in group] for name, part in parts.items()}


def _is_blank(record: PairRecord) -> bool:
    return any(isinstance(cell, str) and not cell.strip() for cell in (record.source, record.target))
