"""Labelled items in files that are cells of a table: images in .parquet files and saved Hugging Face datasets."""

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regardant.data.folders import SPLITS
from regardant.data.item_files import StoredFile, content_key
from regardant.data.labelled import Labelled, LabelledConfig, Sets
from regardant.data.splits import require_items
from regardant.data.tables import ROWS_AT_ONCE, parquet_tables
from regardant.data.text_files import place
from regardant.errors import DataError, first_line

if TYPE_CHECKING:
    import pyarrow as pa

FEATURES = b"huggingface"
"""Key of a schema's metadata under which a dataset keeps the names of labels."""

SAVED = ("state.json", "dataset_dict.json")
"""Files of a folder that `save_to_disk` wrote."""


class FileTableConfig(LabelledConfig):
    """A table with a file in each row, such as an image: a .parquet file, or a folder written by `save_to_disk`."""

    kind: Literal["file_table"] = "file_table"

    source: str
    """The .parquet file or dataset folder to train on. Splits of a dataset are found by their names."""

    root: str = ""
    """The folder that relative paths start from; the current one if empty."""

    item: str = "image"
    """The column of files: bytes, or structs with `bytes` and `path`, as Hugging Face datasets have them."""

    label: str = "label"
    """The column of labels: texts or numbers. Numbers with names in the file are replaced by the names."""

    validation: str | None = None
    """The .parquet file or dataset to validate on. Empty: the validation split of the dataset, or a share of the
    training items."""

    test: str | None = None
    """The .parquet file or dataset to test on. Empty: the test split of the dataset, or the validation items."""

    def read(self, seed: int) -> Sets:
        source = place(self.root, self.source)
        sets = {SPLITS[name]: items for name, items in self._splits(source).items() if name in SPLITS}
        files = {"validation": self.validation, "test": self.test}
        for name, table in files.items():
            if table is not None:
                sets[name] = self._split_of(place(self.root, table), name)
        if not sets.get("train"):
            raise DataError(f"{source} has no rows to train on: give a table with rows, or a split named train")
        if "validation" not in sets:
            sets |= self.split_off(sets["train"], seed)
        require_items(sets, files, self.source)
        return sets

    def validates_on_share(self) -> bool:
        splits = _tables(place(self.root, self.source))
        return self.validation is None and "validation" not in {SPLITS.get(name) for name in splits}

    def group_of(self, labelled: Labelled) -> Hashable:
        return content_key(labelled[0])

    def given(self, data: Path) -> list[Labelled]:
        """Return the items of a file or a dataset; only the test split of a dataset with several splits."""
        return self._split_of(data, "test")

    def _split_of(self, data: Path, name: str) -> list[Labelled]:
        """Return the items of the split of this name, or of the only split."""
        splits = self._splits(data)
        if len(splits) == 1:
            return next(iter(splits.values()))
        named = {SPLITS.get(split): items for split, items in splits.items()}
        if name not in named:
            raise DataError(f"{data} has the splits {', '.join(splits)}, but no {name}: give a dataset of one split")
        return named[name]

    def _splits(self, source: Path) -> dict[str, list[Labelled]]:
        tables = _tables(source)
        return {
            name: list(_labelled(f"{source} {name}" if len(tables) > 1 else str(source), read(), self.item, self.label))
            for name, read in tables.items()
        }


Tables = Callable[[], Iterator["pa.Table"]]


def _tables(source: Path) -> Mapping[str, Tables]:
    """Return what reads the rows of each split of a file or a dataset, by name. Raises DataError."""
    return _dataset(source) if source.is_dir() else {"train": partial(parquet_tables, source)}


def _dataset(folder: Path) -> Mapping[str, Tables]:
    if not any((folder / name).is_file() for name in SAVED):
        raise DataError(
            f"{folder} is not a dataset written by save_to_disk: give such a folder or a .parquet file, or set "
            "data.kind=folders for a folder of images"
        )
    import datasets

    try:
        opened = datasets.load_from_disk(str(folder))
    except Exception as error:  # its builders share no class of error
        raise DataError(f"{folder} cannot be opened as a dataset ({first_line(error)})") from error
    splits = opened if isinstance(opened, dict) else {"train": opened}

    def reading(split: Any) -> Tables:
        return lambda: split.with_format("arrow").iter(ROWS_AT_ONCE)

    return {name: reading(split) for name, split in splits.items()}


def _labelled(place: str, tables: Iterator["pa.Table"], item: str, label: str) -> Iterator[Labelled]:
    row = 0
    for table in tables:
        for name, setting in ((item, "item"), (label, "label")):
            if name not in table.column_names:
                have = ", ".join(table.column_names)
                raise DataError(f"{place} has no column {name}; it has {have}: set data.{setting} to one of them")
        names = _names_of(table, label)
        for cell, target in zip(table[item].to_pylist(), table[label].to_pylist(), strict=True):
            row += 1
            yield _stored(f"{place} row {row}", item, cell), _label(f"{place} row {row}", label, target, names)


def _stored(place: str, column: str, cell: Any) -> StoredFile:
    content, name = (cell.get("bytes"), cell.get("path")) if isinstance(cell, dict) else (cell, None)
    if not isinstance(content, bytes):
        raise DataError(f"{place}: column {column} holds no bytes of a file: leave the row out, or correct data.item")
    return StoredFile(place if name is None else f"{place} ({name})", Path(name or "").suffix, content)


def _label(place: str, column: str, target: Any, names: list[str] | None) -> str:
    if isinstance(target, int) and names is not None:
        if not 0 <= target < len(names):
            raise DataError(
                f"{place}: column {column} holds {target}, but the file names only the labels 0 to {len(names) - 1} "
                "(datasets write -1 where a label is missing): leave the row or its split out"
            )
        return names[target]
    if not isinstance(target, int | str) or not str(target).strip():
        raise DataError(f"{place}: column {column} holds {target!r:.40}, which is not a label: leave the row out")
    return str(target).strip()


def _names_of(table: "pa.Table", column: str) -> list[str] | None:
    """Return the names of the numbers in a column of labels, from the schema. None if it has none."""
    try:
        features = json.loads((table.schema.metadata or {})[FEATURES])["info"]["features"]
        names: list[str] = features[column]["names"]
    except (KeyError, TypeError, ValueError):
        return None
    return names
