"""Series of numbers over time, from a table: a column of times in equal steps, and columns of numbers.

The first rows are for training, the next ones for validation, then for the test. Validation and test are preceded by
the rows before them, which a forecast reads as history.

Shape legend: N rows, C columns.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from regardant.config import Config
from regardant.config.did_you_mean import did_you_mean
from regardant.data.tables import read_table_rows
from regardant.data.text_files import place
from regardant.errors import DataError

TIME_NAMES = frozenset({"date", "time", "timestamp", "datetime"})
"""Names of a column of times, in lower case."""

SHOWN_NAMES = 8
"""Number of column names shown in a message."""

PERIODS = (np.timedelta64(1, "D"), np.timedelta64(7, "D"))
"""Candidates for the seasonal period, the shortest first."""

MONTHS = 12
"""Seasonal period in months."""

Times = NDArray[Any]
"""[N] datetime64 in microseconds, or float64 where times are plain numbers."""


@dataclass(frozen=True)
class Series:
    """Columns of numbers over the same times."""

    time: str
    """Name of the column of times."""
    times: Times
    names: Sequence[str]
    """[C] names of the columns of numbers."""
    values: NDArray[np.float64]
    """[N, C]"""

    def __len__(self) -> int:
        return len(self.times)

    @property
    def season(self) -> int | None:
        """Seasonal period in rows: a day, a week for steps of a day or more, a year for steps of whole months. None for
        less than two rows, for times that are plain numbers, and if the period is no whole number of rows above 1."""
        if self.times.dtype.kind != "M" or len(self) < 2:
            return None
        months, step = _months(self.times), self.times[1] - self.times[0]
        if months is not None and months[0] > 0:
            steps = MONTHS / months[0]
        else:
            steps = next((period / step for period in PERIODS if period > step), 0.0)
        return int(steps) if steps > 1 and steps == int(steps) else None

    def rows(self, start: int, end: int) -> "Series":
        """Return rows `start` to `end`, exclusive."""
        return Series(self.time, self.times[start:end], self.names, self.values[start:end])

    def next_times(self, count: int) -> list[str]:
        """Return the times of the next rows. At least two rows are needed."""
        return [str(one) for one in _continued(self.times, count)]


class SeriesConfig(Config):
    """Series from a .csv or .tsv table, plain, .gz or .zst."""

    source: str
    """The table. Its first row has the names of the columns."""

    root: str = ""
    """The folder that relative paths start from; the current one if empty."""

    time: str | None = None
    """The column of times: ISO 8601 (2016-07-01 00:00) or plain numbers. Empty: the one named date, time, timestamp or
    datetime, or else the one that holds ISO times."""

    columns: tuple[str, ...] | None = Field(None, min_length=1)
    """The columns to forecast. Empty: all but the times."""

    train: float = Field(0.7, gt=0, allow_inf_nan=False)
    """Share of the rows to train on, or their number if it is 1 or more."""

    validation: float = Field(0.1, gt=0, allow_inf_nan=False)
    """Share of the rows to validate on, those after the training rows, or their number if it is 1 or more."""

    test: float = Field(0.2, gt=0, allow_inf_nan=False)
    """Share of the rows to test on, those after the validation rows, or their number if it is 1 or more."""

    @field_validator("train", "validation", "test")
    @classmethod
    def size_is_a_share_or_a_number(cls, size: float) -> float:
        """Refuse numbers of rows that are not whole."""
        if size >= 1 and size != int(size):
            raise ValueError(f"given {size:g}; allowed: a share below 1, or a whole number of rows")
        return size

    def table(self) -> tuple[Series, dict[str, int]]:
        """Return the whole table, and the number of rows of each split.

        Raises DataError for a table that cannot be read, or that is shorter than its splits.
        """
        path = place(self.root, self.source)
        series = read_series(path, self.time, self.columns)
        given = {"train": self.train, "validation": self.validation, "test": self.test}
        sizes = {name: int(size) if size >= 1 else int(size * len(series) + 1e-6) for name, size in given.items()}
        if (total := sum(sizes.values())) > len(series):
            raise DataError(f"{path} has {len(series):,} rows, and the splits take {total:,}: lower data.train")
        return series, sizes


def split_rows(series: Series, sizes: Mapping[str, int], history: int, horizon: int) -> dict[str, Series]:
    """Return the rows of all splits; validation and test are preceded by up to `history` rows before them.

    Raises DataError if a split has too few rows for one forecast.
    """
    sets, start = {}, 0
    for name, size in sizes.items():
        before = min(start, history)
        if size + before < history + horizon or size < horizon:
            lower = "head.horizon" if size < horizon else "input.history or head.horizon"
            raise DataError(
                f"data.{name}: {size:,} of {len(series):,} rows are too few to forecast {horizon} rows from "
                f"{history}: give more rows, raise data.{name}, or lower {lower}"
            )
        sets[name] = series.rows(start - before, start + size)
        start += size
    return sets


def read_series(path: Path, time: str | None = None, columns: Sequence[str] | None = None) -> Series:
    """Return columns of a table over its column of times; by default all the others.

    Raises:
        DataError: a column is missing or not found, a cell is no number, or times are not in order and equal steps.
    """
    rows = [(line, [cell.decode(errors="replace") for cell in cells]) for line, cells in read_table_rows(path)]
    if len(rows) < 3:
        raise DataError(f"{path} has {max(0, len(rows) - 1)} rows of numbers: give at least two below the names")
    (_, names), *rows = rows
    for line, cells in rows:
        if len(cells) != len(names):
            raise DataError(f"{path} line {line:,} has {len(cells)} cells, the first line {len(names)}: correct it")
    if len(set(names)) != len(names):
        raise DataError(f"{path}: two columns are named {Counter(names).most_common(1)[0][0]}: rename one")
    time = _time_column(path, names, rows[0][1], time)
    columns = [name for name in names if name != time] if columns is None else list(columns)
    if not columns:
        raise DataError(f"{path} has no column beside {time}: give at least one column of numbers")
    for name in columns:
        require_column(path, name, names)
    at = names.index(time)
    times = _times(path, time, [(line, cells[at]) for line, cells in rows])
    values = [_numbers(path, name, names.index(name), rows) for name in columns]
    return Series(time, times, columns, np.array(values, dtype=np.float64).T)


def require_column(place: object, name: str, names: Sequence[str]) -> None:
    """Raise DataError if there is no column of that name."""
    if name not in names:
        raise DataError(f"{place} has no column {name}{did_you_mean(name, names)} (there are: {_listed(names)})")


def _time_column(path: Path, names: Sequence[str], first: Sequence[str], asked: str | None) -> str:
    if asked is not None:
        require_column(path, asked, names)
        return asked
    by_name = [name for name in names if name.strip().lower() in TIME_NAMES]
    found = by_name or [name for name, cell in zip(names, first, strict=True) if _moment(cell) is not None]
    if len(found) == 1:
        return found[0]
    several = f"{len(found)} columns of times" if found else "no column named date, time or timestamp"
    raise DataError(f"{path} has {several} (there are: {_listed(names)}): set data.time=COLUMN")


def _numbers(path: Path, name: str, at: int, rows: Sequence[tuple[int, list[str]]]) -> list[float]:
    numbers = []
    for line, cells in rows:
        number = _number(cells[at])
        if number is None:
            raise DataError(
                f"{path} line {line:,}: column {name} holds {cells[at]!r:.40}, not a number: correct the cell, or "
                "leave the column out of data.columns"
            )
        numbers.append(number)
    return numbers


def _times(path: Path, name: str, cells: Sequence[tuple[int, str]]) -> Times:
    numeric = _number(cells[0][1]) is not None
    found: list[Any] = []
    for line, cell in cells:
        one = _number(cell) if numeric else _moment(cell)
        if one is None:
            kind = "a number, as in the row before" if numeric else "an ISO time such as 2016-07-01 00:00"
            raise DataError(f"{path} line {line:,}: column {name} holds {cell!r:.40}, not {kind}: correct it")
        found.append(one)
    times = np.array(found, dtype=np.float64 if numeric else "datetime64[us]")
    _require_equal_steps(path, [line for line, _ in cells], times)
    return times


def _require_equal_steps(path: Path, lines: Sequence[int], times: Times) -> None:
    def at(row: int) -> str:
        return f"{path} line {lines[row]:,}: {_shown(times[row])}"

    steps = np.diff(times)
    if (late := np.flatnonzero(steps <= steps.dtype.type(0))).size:
        row = int(late[0]) + 1
        raise DataError(
            f"{at(row)} is not after {_shown(times[row - 1])} in the row before: sort the rows by time, one for each"
        )
    if _months(times) is not None:
        return
    values, counts = np.unique(steps, return_counts=True)
    step = values[counts.argmax()]
    unlike = steps != step if times.dtype.kind == "M" else ~np.isclose(steps, step)
    if unlike.any():
        row = int(unlike.argmax()) + 1
        raise DataError(
            f"{at(row)} comes {_step(steps[row - 1])} after the row before, others {_step(step)}: fill the gap, or "
            "leave out the rows on one side of it"
        )


def _months(times: Times) -> tuple[int, Any] | None:
    """Return the number of months between rows, and the time to add to each for the same day of the month. None if rows
    are not equally many months apart, on the same day or on the last day of the month."""
    if times.dtype.kind != "M":
        return None
    for shift in (np.timedelta64(0, "D"), np.timedelta64(1, "D")):
        months = (times + shift).astype("datetime64[M]")
        days = times + shift - months.astype(times.dtype)
        between = np.unique(np.diff(months).astype(np.int64))
        if len(between) == 1 and between[0] > 0 and (days == days[0]).all():
            return int(between[0]), shift
    return None


def _continued(times: Times, count: int) -> Times:
    steps = np.arange(1, count + 1)
    continued: Times = times[-1] + steps * (times[-1] - times[-2])
    if (found := _months(times)) is not None:
        months, shift = found
        last = (times[-1] + shift).astype("datetime64[M]")
        day = times[-1] + shift - last.astype(times.dtype)
        continued = (last + months * steps).astype(times.dtype) + day - shift
    if times.dtype.kind != "M":
        return continued
    seconds = continued.astype("datetime64[s]")
    return seconds if (seconds == continued).all() else continued


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _moment(cell: str) -> datetime | None:
    """Return an ISO time, converted to UTC if it has a time zone. None if the cell is no ISO time."""
    if _number(cell) is not None:  # 20160701 is a number here
        return None
    try:
        moment = datetime.fromisoformat(cell.strip())
    except ValueError:
        return None
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _shown(time: Any) -> str:
    return f"{time:g}" if isinstance(time, float) else str(time.item())


def _step(step: Any) -> str:
    return f"{step:g}" if isinstance(step, float) else str(step.astype("timedelta64[us]").item())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN_NAMES]) + (", ..." if len(names) > SHOWN_NAMES else "")
