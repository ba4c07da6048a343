"""Columns of a table, or pairs of two columns of a table or a Hugging Face dataset, read a row at a time."""

import csv
import json
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from regardant.data.text_files import Fault, PairRecord, decode, near_names, require_file, text_lines
from regardant.errors import DataError, first_line

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 1000


class Row(NamedTuple):
    """Cells of the requested columns in one row."""

    line: int
    """Number, from 1, of the line where the row starts, or of the row in a parquet file."""

    cells: tuple[str | Fault, ...]


def read_columns(path: Path, columns: Sequence[str], numbers: Collection[str] = ()) -> Iterator[Row]:
    """Yield the cells of columns of a .tsv, .csv, .jsonl, .json or .parquet file; the text ones also .gz or .zst.

    .tsv, .csv    The first line has the names of the columns. If all `columns` are numbers ("1" and "2", from 1),
                  there are no names, and every line is a row. In .tsv a quote is text; in .csv it quotes. Cells of .csv
                  are separated by semicolons if the first line has some and no comma.
    .jsonl, .json One object per line. Dots reach into objects: translation.en
    .parquet      Dots reach into structs.

    The columns in `numbers` may hold whole numbers, which become text. Raises DataError for a missing or damaged file,
    for a file of another kind and for a column that is not there.
    """
    require_file(path)
    if not is_table_file(path):
        raise DataError(
            f"{path} is not a table: give a file that ends in {', '.join(_TABLES)}, or these with .gz or .zst"
        )
    return _TABLES[plain_suffix(path)](path, columns, numbers)


def read_table(path: Path, source: str, target: str, numbers: Collection[str] = ()) -> Iterator[PairRecord]:
    """Yield the pairs of two columns of a file, read like `read_columns`, with the same errors."""
    return _pairs(read_columns(path, (source, target), numbers))


def first_row(path: Path) -> list[str] | None:
    """Return the cells of the first line of a .tsv or .csv file, names or a pair. None for other files.

    Raises DataError as `read_table` does.
    """
    rows = _ROWS.get(plain_suffix(path))
    if rows is None:
        return None
    require_file(path)
    return next(([cell.decode(errors="replace") for cell in cells] for _, cells in rows(path)), [])


def read_table_rows(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the line and the cells of each row of a .tsv or .csv file, plain, .gz or .zst. The first row has the names.

    Raises DataError for a missing or damaged file, and for a file of another kind.
    """
    rows = _ROWS.get(plain_suffix(path))
    if rows is None:
        raise DataError(f"{path} is not a text table: give a file that ends in .csv or .tsv, or these with .gz or .zst")
    require_file(path)
    return rows(path)


def is_text_table(path: Path) -> bool:
    """Return whether `read_table_rows` reads files of this name."""
    return plain_suffix(path) in _ROWS


def is_table_file(path: Path) -> bool:
    """Return whether `read_table` reads files of this name."""
    return plain_suffix(path) in _TABLES


def read_dataset(
    name: str, source: str, target: str, split: str | None = None, subset: str | None = None
) -> Iterator[PairRecord]:
    """Yield the pairs of two columns of a Hugging Face dataset. Dots reach into a column: translation.en

    `name` is a folder written by `save_to_disk`, a folder that `load_dataset` reads, or a name on the hub; the last two
    are streamed. `split` may be left out if there is only one. `subset` is the variant of a dataset on the hub (as
    en-fr of opus_books).

    Raises DataError at once if it cannot be opened, and with the first rows if a column is missing.
    """
    return _dataset_records(_open_dataset(name, split, subset), name, source, target)


def plain_suffix(path: Path) -> str:
    """Return the suffix of a file in lower case, without a .gz or .zst after it."""
    return (Path(path.stem).suffix if path.suffix in (".gz", ".zst") else path.suffix).lower()


def _pairs(rows: Iterator[Row]) -> Iterator[PairRecord]:
    return (PairRecord(line, *cells) for line, cells in rows)


def _rows_of_lines(path: Path, columns: Sequence[str], numbers: Collection[str]) -> Iterator[Row]:
    return _chosen(path, _ROWS[plain_suffix(path)](path), columns)


def _tsv_rows(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    blank: list[int] = []
    for number, line in enumerate(text_lines(path), 1):
        if line:
            yield from ((before, [line[:0]]) for before in blank)
            blank = []
            yield number, line.split(b"\t")
        else:  # at the end of the file it is no row
            blank.append(number)


def _csv_rows(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    # The csv module takes only text; Latin-1 carries any byte through it unchanged.
    csv.field_size_limit(sys.maxsize)  # the cleaning limits the length of texts
    lines = text_lines(path)
    first = next(lines, b"")
    # Spreadsheets write semicolons where the comma is the decimal point.
    delimiter = ";" if b";" in first and b"," not in first else ","
    given = (line.decode("latin-1") + "\n" for line in chain([first], lines))
    reader = csv.reader(given, delimiter=delimiter, strict=True)
    start = 1
    try:
        for row in reader:
            if row:  # a blank line is no row
                yield start, [cell.encode("latin-1") for cell in row]
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path} line {start}: {error}; is a quote left open or not doubled?") from error


def _chosen(path: Path, rows: Iterator[tuple[int, list[bytes]]], columns: Sequence[str]) -> Iterator[Row]:
    first = next(rows, None)
    if first is None:
        return
    if all(name.isdecimal() for name in columns):
        names = [str(column) for column in range(1, len(first[1]) + 1)]
        rows = chain([first], rows)
    else:
        names = [cell.decode(errors="replace") for cell in first[1]]
    _require_columns(path, columns, names)
    places = [names.index(name) for name in columns]
    for number, cells in rows:
        yield Row(number, tuple(decode(cells[c]) if c < len(cells) else Fault.MISSING for c in places))


def _require_columns(place: object, asked: Sequence[str], names: list[str]) -> None:
    for name in asked:
        if name not in names:
            raise DataError(f"{place} has no column {name}; it has {', '.join(names)}")


def _json_rows(path: Path, columns: Sequence[str], numbers: Collection[str]) -> Iterator[Row]:
    columns_are_known = False
    for number, line in enumerate(text_lines(path), 1):
        text = decode(line)
        if isinstance(text, Fault):
            yield Row(number, (text,) * len(columns))
        elif text.strip():
            row = _json_row(path, number, text)
            if not columns_are_known and (missing := [name for name in columns if name not in row]):
                raise DataError(
                    f"{path} has no column {missing[0]}; it has {', '.join(row)} in line {number}: correct the name, "
                    "or write null where there is no value"
                )
            columns_are_known = True
            yield Row(number, tuple(_json_cell(path, number, row, name, name in numbers) for name in columns))


def _json_row(path: Path, number: int, text: str) -> dict[str, object]:
    try:
        row = json.loads(text)
        if isinstance(row, dict):
            return dict(_flatten(row))
    except (ValueError, RecursionError):  # RecursionError: deeply nested lists
        pass
    raise DataError(f"{path} line {number} is not a JSON object; each line must be one")


def _flatten(row: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _json_cell(path: Path, number: int, row: dict[str, object], name: str, is_number: bool) -> str | Fault:
    value = row.get(name)
    if value is None:
        return Fault.MISSING
    if is_number and type(value) is int:
        return str(value)
    if not isinstance(value, str):
        raise DataError(
            f"{path} line {number}: column {name} holds {value!r:.40}, not text: write the cell in quotes, or name "
            "another column"
        )
    return decode(value.encode("utf-8", "surrogatepass"))  # JSON can spell half a surrogate pair


def _parquet_rows(path: Path, columns: Sequence[str], numbers: Collection[str]) -> Iterator[Row]:
    rows_before = 0
    for table in parquet_tables(path):
        yield from arrow_rows(path, table, columns, rows_before, numbers)
        rows_before += table.num_rows


def parquet_tables(path: Path) -> Iterator["pa.Table"]:
    """Yield the rows of a .parquet file, ROWS_AT_ONCE at a time. Raises DataError for a missing or damaged file."""
    require_file(path)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE):
                yield pa.table(batch).replace_schema_metadata(file.schema_arrow.metadata)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:  # UnicodeDecodeError: in a column's name
        raise DataError(f"{path} cannot be read as parquet: {first_line(error)}") from error


def arrow_rows(
    place: object, table: "pa.Table", columns: Sequence[str], rows_before: int, numbers: Collection[str] = ()
) -> Iterator[Row]:
    """Yield the cells of columns of an Arrow table. Dots reach into structs. Raises DataError."""
    import pyarrow as pa

    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    _require_columns(place, columns, table.column_names)
    for number, name in enumerate(table.column_names):
        if name in numbers and pa.types.is_integer(table.schema.field(name).type):
            table = table.set_column(number, name, table[name].cast(pa.string()))
    for name in columns:
        kind = table.schema.field(name).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
            raise DataError(
                f"{place}: column {name} holds {kind}, not text: save it as a column of strings, or name another column"
            )
    # As bytes: Arrow does not validate UTF-8 when reading, and decoding would raise for the whole batch.
    cells = [table[name].cast(pa.large_binary()).to_pylist() for name in columns]
    for number, row in enumerate(zip(*cells, strict=True), rows_before + 1):
        yield Row(number, tuple(Fault.MISSING if raw is None else decode(raw) for raw in row))


_ROWS: dict[str, Callable[[Path], Iterator[tuple[int, list[bytes]]]]] = {".tsv": _tsv_rows, ".csv": _csv_rows}
_TABLES: dict[str, Callable[[Path, Sequence[str], Collection[str]], Iterator[Row]]] = {
    ".tsv": _rows_of_lines,
    ".csv": _rows_of_lines,
    ".jsonl": _json_rows,
    ".json": _json_rows,
    ".parquet": _parquet_rows,
}


def _open_dataset(name: str, split: str | None, subset: str | None) -> Any:
    opened = _load(name, subset)
    if not isinstance(opened, dict):
        if split is not None:
            raise DataError(f"{name} has no splits, but split {split} is asked for; leave split out")
        return opened
    if split is None and len(opened) == 1:
        return next(iter(opened.values()))
    if split not in opened:
        problem = "has several splits" if split is None else f"has no split {split}"
        raise DataError(f"{name} {problem}; set split to one of {', '.join(opened)}")
    return opened[split]


def _load(name: str, subset: str | None) -> Any:
    import datasets

    was_saved = any((Path(name) / state).is_file() for state in ("state.json", "dataset_dict.json"))
    with no_progress_bars(), TemporaryDirectory() as cache:  # even streaming leaves lock files in a cache
        try:
            if was_saved:
                return datasets.load_from_disk(name)
            return datasets.load_dataset(name, subset, streaming=True, cache_dir=cache)
        except Exception as error:  # the hub's client and the builders share no class of their own
            problem = "cannot be opened as a dataset"
            if not Path(name).exists():
                problem = f"is neither a folder here nor a dataset on the hub; {near_names(Path(name))}"
            raise DataError(f"{name} {problem} ({first_line(error)})") from error


def _dataset_records(dataset: Any, name: str, source: str, target: str) -> Iterator[PairRecord]:
    rows_before = 0
    try:
        for table in dataset.with_format("arrow").iter(ROWS_AT_ONCE):
            yield from _pairs(arrow_rows(name, table, (source, target), rows_before))
            rows_before += table.num_rows
    except DataError:
        raise
    except Exception as error:  # each builder and each decompressor raises another class for a damaged file
        raise DataError(f"{name} cannot be read after row {rows_before:,}: {first_line(error)}") from error


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Hide the progress bars of `datasets`."""
    import datasets

    was_disabled = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if not was_disabled:
            datasets.enable_progress_bars()
