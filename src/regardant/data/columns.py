"""The columns of texts and of labels in a table whose recipe names none."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from regardant.data.tables import is_text_table, read_table_rows
from regardant.errors import DataError

FIRST_ROWS = 1000
"""Number of rows that are inspected."""

TEXTS = frozenset({"text", "sentence", "review", "content", "comment", "message", "tweet"})
"""Names of a column of texts, in lower case."""

LABELS = frozenset({"label", "class", "category", "sentiment", "target"})
"""Names of a column of labels, in lower case."""


class Columns(NamedTuple):
    """Names of two columns, or their numbers, from 1, in a table without names."""

    text: str
    label: str


def find_columns(path: Path, text: str | None, label: str | None) -> Columns:
    """Return the columns of texts and of labels; those that are given are kept.

    A column is found by its name, or else by its cells: texts have spaces, and labels repeat. Only
    .tsv and .csv files are inspected; in any other file the columns are `text` and `label`.

    Raises:
        DataError: the columns are ambiguous. The message lists all of them.
    """
    if (text and label) or not is_text_table(path):
        return Columns(text or "text", label or "label")
    rows = [
        [cell.decode(errors="replace") for cell in cells] for _, cells in islice(read_table_rows(path), FIRST_ROWS + 1)
    ]
    if len(rows) < 2:
        raise DataError(f"{path} has {len(rows)} rows: give a table with a row for each text")
    names = rows[0]
    text = text or _named(names, TEXTS)
    label = label or _named(names, LABELS)
    if text and label:
        return Columns(text, label)
    columns = [[row[at].strip() if at < len(row) else "" for row in rows[1:]] for at in range(len(names))]
    found = _by_cells(names, columns, text, label)
    if found is None:
        raise DataError(
            f"{path} has the columns {', '.join(names)}: set data.text to the column of texts and data.label "
            "to the column of labels"
        )
    at_text, at_label = found
    if text is None and label is None and names[at_label].strip() in columns[at_label]:
        return Columns(str(at_text + 1), str(at_label + 1))  # the first row is data, so the table has no names
    return Columns(names[at_text], names[at_label])


def _named(names: Sequence[str], known: frozenset[str]) -> str | None:
    found = [name for name in names if name.strip().lower() in known]
    return found[0] if len(found) == 1 else None


def _by_cells(
    names: Sequence[str], columns: Sequence[Sequence[str]], text: str | None, label: str | None
) -> tuple[int, int] | None:
    """Return the number of the column of texts and of that of labels, from 0. None if they are ambiguous."""
    if not {text, label} - {None} <= set(names):
        return None
    others = [at for at, name in enumerate(names) if name not in (text, label)]
    texts = [names.index(text)] if text else [at for at in others if _are_texts(columns[at])]
    labels = [names.index(label)] if label else [at for at in others if at not in texts and _repeat(columns[at])]
    return (texts[0], labels[0]) if len(texts) == len(labels) == 1 else None


def _are_texts(cells: Sequence[str]) -> bool:
    return sum(" " in cell for cell in cells) > len(cells) / 2


def _repeat(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return 1 < len(set(filled)) <= max(2, len(filled) // 2)
