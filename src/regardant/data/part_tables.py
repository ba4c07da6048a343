"""Items of several parts with a label each, from tables: a part is a text, or the path of a file beside the table."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import model_validator

from regardant.data.item_files import content_key
from regardant.data.labelled import Labelled, LabelledConfig, Sets
from regardant.data.splits import FilesConfig
from regardant.data.tables import read_columns
from regardant.data.text_files import Fault, place
from regardant.errors import DataError


class PartTableConfig(FilesConfig, LabelledConfig):
    """Items of several parts with labels, from .tsv, .csv, .jsonl or .parquet tables: a column for each part."""

    kind: Literal["part_table"] = "part_table"

    texts: Sequence[str] = ()
    """The columns of parts that are texts. A part has the name of its column."""

    files: Sequence[str] = ()
    """The columns of parts that are paths of files, from the folder of the table on, such as images."""

    label: str = "label"
    """The column of labels."""

    @model_validator(mode="after")
    def columns_differ(self) -> Self:
        """Refuse a table without parts, and a column that is named twice."""
        columns = [*self.files, *self.texts]
        if not columns:
            raise ValueError("the table has no parts: name their columns in texts or files, such as files=[image]")
        if len({*columns, self.label}) <= len(columns):
            raise ValueError(f"a column is named twice ({', '.join([*columns, self.label])}): name each once")
        return self

    def read(self, seed: int) -> Sets:
        return self.sets(self.items, self.group_of, self.validation_share, seed)

    def group_of(self, labelled: Labelled) -> Hashable:
        first = next(iter(labelled[0].values()))
        return content_key(first) if isinstance(first, Path) else first

    def given(self, data: Path) -> list[Labelled]:
        return list(self.items(str(data.resolve())))

    def items(self, table: str) -> Iterator[tuple[Mapping[str, Any], str]]:
        """Yield the labelled items of a table. Raises DataError for a blank cell."""
        path = place(self.root, table)
        columns = [*self.files, *self.texts, self.label]
        for row in read_columns(path, columns, [self.label]):
            cells = []
            for name, cell in zip(columns, row.cells, strict=True):
                if isinstance(cell, Fault) or not cell.strip():
                    raise DataError(f"{path} line {row.line}: {name} is blank or cannot be read: give one")
                cells.append(cell.strip())
            item: dict[str, Any] = dict(zip(columns, cells, strict=True))
            label = item.pop(self.label)
            yield item | {name: path.parent / item[name] for name in self.files}, label
