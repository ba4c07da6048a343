"""Series from tables: the column of times, equal steps, splits by time, and one line for every mistake."""

import gzip
import re

import numpy as np
import pytest
from pydantic import ValidationError

from regardant.data.series import SeriesConfig, read_series, split_rows
from regardant.errors import DataError

HOURS = [f"2016-07-01 {hour:02}:00:00" for hour in range(10)]


@pytest.fixture
def table(tmp_path):
    """Write rows of cells, and return the path."""

    def write(*rows, name="a.csv"):
        path = tmp_path / name
        content = "".join(",".join(map(str, row)) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


def hourly(table, count=10, **options):
    return table(("date", "a", "b"), *((HOURS[row], row, -row) for row in range(count)), **options)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_columns_and_times_are_read(table, name):
    series = read_series(hourly(table, name=name))
    assert (series.time, list(series.names), len(series)) == ("date", ["a", "b"], 10)
    np.testing.assert_array_equal(series.values, [[row, -row] for row in range(10)])
    assert series.next_times(2) == ["2016-07-01T10:00:00", "2016-07-01T11:00:00"]


def test_only_the_columns_that_are_asked_for_are_read(table):
    path = table(("Time", "note", "a"), *((row, "x", row) for row in range(4)))
    series = read_series(path, columns=["a"])
    assert list(series.names) == ["a"] and series.next_times(1) == ["4.0"]


@pytest.mark.parametrize(
    ("times", "following"),
    [
        (["2020-01-01", "2020-02-01", "2020-03-01"], ["2020-04-01T00:00:00", "2020-05-01T00:00:00"]),
        (["2020-01-31", "2020-02-29", "2020-03-31"], ["2020-04-30T00:00:00", "2020-05-31T00:00:00"]),
        (["2020-02-27", "2020-02-28", "2020-02-29"], ["2020-03-01T00:00:00", "2020-03-02T00:00:00"]),
        (["2020-03-29T00:00+01:00", "2020-03-29T01:00+01:00", "2020-03-29T03:00+02:00"], ["2020-03-29T02:00:00"]),
    ],
)
def test_days_months_and_zones_are_equal_steps(table, times, following):
    series = read_series(table(("when", "a"), *((time, 1) for time in times)))
    assert series.time == "when" and series.next_times(len(following)) == following


@pytest.mark.parametrize(
    ("times", "season"),
    [
        (HOURS, 24),
        (["2020-01-01 00:00", "2020-01-01 00:15"], 96),
        (["2020-01-01 00:00", "2020-01-01 00:07"], None),
        (["2020-01-30", "2020-01-31", "2020-02-01"], 7),
        (["2020-01-01", "2020-01-08"], None),
        (["2020-01-31", "2020-02-29", "2020-03-31"], 12),
        (["2020-01-01", "2020-04-01", "2020-07-01"], 4),
        (["2020-01-01", "2021-01-01"], None),
        ([1, 2, 3], None),
    ],
)
def test_a_season_is_a_day_a_week_of_days_or_a_year_of_months(table, times, season):
    assert read_series(table(("when", "a"), *((time, 1) for time in times)), "when").season == season


def changed(row, cells):
    rows = [["date", "a", "b"], *([HOURS[number], str(number), str(-number)] for number in range(10))]
    rows[row] = cells
    return rows


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (changed(4, [HOURS[3], "x", "1"]), "line 5: column a holds 'x', not a number: correct the cell, or leave"),
        (changed(4, [HOURS[3], "", "1"]), "line 5: column a holds '', not a number"),
        (changed(4, [HOURS[3], "1", "nan"]), "line 5: column b holds 'nan', not a number"),
        (changed(4, [HOURS[3], "1"]), "line 5 has 2 cells, the first line 3: correct it"),
        (
            changed(4, ["1.7.2016", "1", "1"]),
            "line 5: column date holds '1.7.2016', not an ISO time such as 2016",
        ),
        (
            changed(4, [HOURS[1], "1", "1"]),
            "line 5: 2016-07-01 01:00:00 is not after 2016-07-01 02:00:00",
        ),
        (changed(4, [HOURS[2], "1", "1"]), "in the row before: sort the rows by time, one for each"),
        (
            changed(10, ["2016-07-02", "1", "1"]),
            "line 11: 2016-07-02 00:00:00 comes 16:00:00 after the row before",
        ),
        (
            changed(10, ["2016-07-02", "1", "1"]),
            "others 1:00:00: fill the gap, or leave out the rows on one side",
        ),
        (
            [["a", "b"], *(("1", "2") for _ in range(4))],
            "no column named date, time or timestamp (there are: a, b)",
        ),
        (
            [["date", "time", "a"], *((row, row, 1) for row in range(4))],
            "has 2 columns of times (there are: date, time, a)",
        ),
        ([["date", "a", "a"], *((row, 1, 1) for row in range(4))], "two columns are named a: rename one"),
        ([["date"], *((row,) for row in range(4))], "has no column beside date: give at least one column of numbers"),
        ([["date", "a"], ["1", "2"]], "has 1 rows of numbers: give at least two below the names"),
        ([["date", "a"], [0, 1], [1, 1], [3, 1], [4, 1]], "line 4: 3 comes 2 after the row before, others 1"),
    ],
)
def test_a_table_that_is_no_series_is_one_line(table, rows, told):
    with pytest.raises(DataError, match=re.escape(told)) as refused:
        read_series(table(*rows))
    assert "\n" not in str(refused.value) and "a.csv" in str(refused.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"time": "dat"}, "has no column dat; did you mean date?"),
        ({"columns": ["c"]}, "has no column c (there are: date, a, b)"),
    ],
)
def test_a_column_that_is_not_there_is_one_line(table, options, told):
    with pytest.raises(DataError, match=re.escape(told)):
        read_series(hourly(table), **options)


def test_a_file_of_another_kind_is_one_line(tmp_path):
    with pytest.raises(DataError, match=r"a.parquet is not a text table: give a file that ends in .csv or .tsv"):
        read_series(tmp_path / "a.parquet")


def split(table, **sizes):
    config = SeriesConfig(source="a.csv", root=str(hourly(table).parent), **sizes)
    return split_rows(*config.table(), history=2, horizon=1)


@pytest.mark.parametrize(
    "sizes", [{"train": 0.6, "validation": 0.2, "test": 0.2}, {"train": 6, "validation": 2, "test": 2}]
)
def test_splits_follow_each_other_in_time_and_begin_with_their_history(table, sizes):
    rows = {name: series.values[:, 0].tolist() for name, series in split(table, **sizes).items()}
    assert rows == {"train": [0, 1, 2, 3, 4, 5], "validation": [4, 5, 6, 7], "test": [6, 7, 8, 9]}


def test_rows_after_the_splits_are_left_out(table):
    assert split(table, train=4, validation=1, test=1)["test"].values[:, 0].tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ({"train": 8, "validation": 2, "test": 2}, "has 10 rows, and the splits take 12: lower data.train"),
        (
            {"train": 2},
            "data.train: 2 of 10 rows are too few to forecast 1 rows from 2: give more rows, raise data.train, or "
            "lower input.history or head.horizon",
        ),
        (
            {"train": 5, "validation": 0.01},
            "data.validation: 0 of 10 rows are too few to forecast 1 rows from 2: give more rows, raise "
            "data.validation, or lower head.horizon",
        ),
    ],
)
def test_too_few_rows_are_one_line(table, sizes, told):
    with pytest.raises(DataError, match=re.escape(told)):
        split(table, **sizes)


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_a_number_of_rows_is_finite(split):
    with pytest.raises(ValidationError, match="should be a finite number"):
        SeriesConfig(source="a.csv", **{split: float("inf")})


def test_a_number_of_rows_is_whole():
    with pytest.raises(ValidationError, match=r"given 2\.5; allowed: a share below 1, or a whole number of rows"):
        SeriesConfig(source="a.csv", train=2.5)
