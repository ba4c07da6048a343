"""Rows of sharded Parquet, JSON lines or text, read by `datasets` from any position, and the buffers they fill.

A stream reads its shards in a random order, drawn for each pass. It fills a buffer with rows, which are encoded while
the previous buffer is trained on. A position is that of the first row of a buffer: a resumed run reads this buffer
again, and no rows before it.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from tempfile import TemporaryDirectory
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from regardant.data.addresses import Shard, read_zstd_through_pyarrow, storage
from regardant.data.tables import ROWS_AT_ONCE, Row, arrow_rows, no_progress_bars
from regardant.data.text_files import Fault
from regardant.errors import DataError, first_line

Buffer = TypeVar("Buffer")

REPLACED = "\N{REPLACEMENT CHARACTER}"
"""Character that stands for bytes that are not UTF-8."""


class Position(NamedTuple):
    """The place of a row in a stream."""

    passes: int = 0
    """Number of completed passes over the shards."""
    state: dict[str, Any] | None = None
    """State of the dataset (`datasets` library) in this pass. None: the first row."""
    rows: int = 0
    """Number of rows before it in this pass."""


START = Position()
"""The first row of the first pass."""


def read_shard_rows(
    shards: Sequence[Shard],
    columns: Sequence[str],
    *,
    rank: int = 0,
    size: int = 1,
    begin: Position = START,
    at_once: int = ROWS_AT_ONCE,
) -> Iterator[tuple[list[Row], Position]]:
    """Yield chunks of `at_once` rows, each with the position after the chunk, starting at `begin`.

    Columns of text are numbers, from 1, separated by tabs; `text` is the whole line.

    One of several ranks reads the shards `rank::size` if `size` divides their number, and the rows `rank::size`
    otherwise. Raises DataError.
    """
    import datasets
    from datasets.distributed import split_dataset_by_node

    place = shards[0].address if len(shards) == 1 else f"{shards[0].address} and {len(shards) - 1:,} more"
    kind = shards[0].kind
    options = {"encoding_errors": "replace"} if kind in ("text", "json") else {}
    if kind == "text":
        options["encoding"] = "utf-8-sig"  # leaves out a byte order mark
    storage(shards[0].address)  # registers the protocol of the address
    read_zstd_through_pyarrow()
    rows_before = begin.rows
    with TemporaryDirectory() as cache:
        try:
            files = [shard.address for shard in shards]
            with no_progress_bars():
                dataset = datasets.load_dataset(
                    kind, data_files=files, split="train", streaming=True, cache_dir=cache, **options
                ).with_format("arrow")
            if size > 1:
                dataset = split_dataset_by_node(dataset, rank, size)
            if begin.state is not None:
                dataset.load_state_dict(begin.state)
            for table in dataset.iter(at_once):
                if kind == "text":
                    rows = _text_rows(table["text"].to_pylist(), columns, rows_before)
                else:
                    rows = list(arrow_rows(place, table, columns, rows_before))
                rows_before += table.num_rows
                yield rows, Position(begin.passes, dataset.state_dict(), rows_before)
        except DataError:
            raise
        except Exception as error:  # each builder raises another class for a damaged file
            raise DataError(f"{place} cannot be read after row {rows_before:,}: {first_line(error)}") from error


def _text_rows(lines: Sequence[str], columns: Sequence[str], rows_before: int) -> list[Row]:
    whole = list(columns) == ["text"]
    places = [] if whole else [_place(column) for column in columns]

    def cells(line: str) -> Iterator[str | Fault]:
        parts = line.split("\t")
        for text in [line] if whole else (parts[at] if at < len(parts) else None for at in places):
            yield Fault.MISSING if text is None else Fault.BAD_ENCODING if REPLACED in text else text

    return [Row(number, tuple(cells(line))) for number, line in enumerate(lines, rows_before + 1)]


def _place(column: str) -> int:
    if not column.isdecimal() or column == "0":
        raise DataError(f"column {column}: text shards have no column names: give numbers, from 1 (tabs divide them)")
    return int(column) - 1


class Stream(Generic[Buffer]):
    """Consecutive buffers of rows from all shards, pass after pass. One buffer is read ahead.

    `encode` turns rows into a buffer. No buffer spans two passes.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        columns: Sequence[str],
        rows: int,
        seed: int,
        encode: Callable[[list[Row]], Buffer],
    ) -> None:
        self.shards, self.columns, self.rows, self.seed, self.encode = shards, columns, rows, seed, encode
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="stream")
        self._ahead: Future[tuple[Position, Buffer]] | None = None
        self.seek(START)

    def seek(self, position: Position, *, rank: int = 0, size: int = 1) -> None:
        """Continue at a position, as rank `rank` of `size`."""
        if self._ahead is not None:
            wait([self._ahead])  # the read changes self._begin
        self.rank, self.size = rank, size
        self._begin = position
        self._reading: Iterator[tuple[list[Row], Position]] | None = None
        self._ahead = None

    def next(self) -> tuple[Position, Buffer]:
        """Return the position and the content of the next buffer, and start to read the one after it."""
        found = (self._ahead or self._pool.submit(self._read)).result()
        self._ahead = self._pool.submit(self._read)
        return found

    def _read(self) -> tuple[Position, Buffer]:
        begin, rows = self._begin, []
        if self._reading is None:
            order = np.random.default_rng([self.seed, begin.passes]).permutation(len(self.shards))
            ordered = [self.shards[number] for number in order]
            self._reading = read_shard_rows(
                ordered,
                self.columns,
                rank=self.rank,
                size=self.size,
                begin=begin,
                at_once=min(self.rows, ROWS_AT_ONCE),
            )
        for chunk, after in self._reading:
            rows += chunk
            self._begin = after
            if len(rows) >= self.rows:
                break
        else:
            self._begin, self._reading = Position(begin.passes + 1), None
            if not rows and begin.state is not None:  # the previous buffer ended with the last row
                return self._read()
        return begin, self.encode(rows)
