"""Series as items: scaled by training rows, read from files, written back, named by their steps."""

import re

import numpy as np
import pytest
from pydantic import ValidationError

from regardant.data.series import Series
from regardant.errors import DataError, RunError
from regardant.modalities import SeriesModalityConfig

CONFIG = SeriesModalityConfig(history=10, patch_length=4, stride=4)


def series(rows=12, names=("a", "b")):
    values = np.random.default_rng(1).normal([5, -100], [1, 30], (rows, 2))[:, : len(names)]
    return Series("time", np.arange(rows, dtype=np.float64), list(names), values)


@pytest.fixture
def codec():
    return CONFIG.fit([series()])


def test_columns_are_scaled_by_their_own_training_rows(codec):
    (scaled,) = codec.encode([series()])
    np.testing.assert_allclose(scaled.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(scaled.std(0), 1, atol=1e-6)
    assert scaled.dtype == np.float32
    other = Series("time", np.arange(12.0), ["b"], series().values[:, 1:] + 30)
    np.testing.assert_allclose(
        codec.encode([other])[0][:, 0], scaled[:, 1] + 30 / series().values[:, 1].std(), rtol=1e-5
    )


def test_a_constant_column_is_not_divided():
    constant = Series("time", np.arange(12.0), ["a"], np.full((12, 1), 1e9))
    (scaled,) = CONFIG.fit([constant]).encode([constant])
    np.testing.assert_array_equal(scaled, 0)


def test_numbers_are_restored_in_their_own_units(codec):
    (scaled,) = codec.encode([series()])
    np.testing.assert_allclose(codec.restored(scaled.T, ["a", "b"]).T, series().values, rtol=1e-4)
    np.testing.assert_allclose(codec.restored(scaled.T[1:, :, None], ["b"])[0, :, 0], series().values[:, 1], rtol=1e-4)


def test_a_kept_codec_is_the_same(codec, tmp_path):
    codec.save(tmp_path)
    assert CONFIG.load(tmp_path).statistics == codec.statistics
    (tmp_path / "series.json").write_text("{}")
    with pytest.raises(RunError, match=r"series.json is damaged \(.*\): restore it or train again"):
        CONFIG.load(tmp_path)


def test_a_written_item_is_read_as_it_was(codec, tmp_path):
    (scaled,) = codec.encode([series()])
    path = codec.argument(scaled, tmp_path, "one")
    np.testing.assert_allclose(codec.encode([codec.parse(path)])[0], scaled, atol=1e-3)
    (latest,) = codec.latest(codec.parse(f"{path}:b"))
    np.testing.assert_allclose(latest, scaled[-10:, 1], atol=1e-3)


def test_large_numbers_and_names_with_commas_are_written_as_they_are(tmp_path):
    values = np.array([[123456789, 0.1], [123456839, -2.5e-7]] * 6)
    given = Series("time, s", np.arange(12.0), ["load, MW", 'a "b"'], values)
    codec = CONFIG.fit([given])
    (scaled,) = codec.encode([given])
    again = codec.parse(codec.argument(scaled, tmp_path, "one"))
    assert again.names == given.names
    np.testing.assert_allclose(again.values, values, rtol=1e-7)


def test_elements_are_named_by_their_steps_before_the_forecast(codec):
    assert codec.labels(np.zeros(10)) == ["-10 to -9", "-8 to -5", "-4 to -1"]
    assert codec.lengths(np.array([10, 15])).tolist() == [3, 3]
    assert codec.collate([np.arange(15.0), np.arange(10.0)]).shape == (2, 10)


def test_a_history_is_not_cut(codec):
    with pytest.raises(DataError, match="a history has 3 patches, of which at most 2 are read: raise"):
        codec.cut(np.zeros(10), 2)


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ("one.csv:c", "has no column c (there are: a, b)"),
        ("two.csv", "there is no file"),
        ("two.csv:a", "there is no file"),
        ("short.csv", "a table of 3 rows was given, and the model reads 10: give more rows"),
        ("other.csv", "has no column a (there are: time, c)"),
    ],
)
def test_an_item_that_cannot_be_read_is_one_line(codec, tmp_path, item, told):
    (scaled,) = codec.encode([series()])
    codec.argument(scaled, tmp_path, "one")
    (tmp_path / "short.csv").write_text("time,a,b\n1,1,1\n2,1,1\n3,1,1\n")
    (tmp_path / "other.csv").write_text("time,c\n1,1\n2,1\n")
    with pytest.raises(DataError, match=re.escape(told)) as refused:
        codec.latest(codec.parse(str(tmp_path / item)))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("item", ["字" * 100 + ".csv", "字" * 100 + ".csv:a"])  # 300 bytes; a file name has at most 255
def test_an_item_whose_name_is_too_long_is_no_file(codec, item):
    with pytest.raises(DataError, match="there is no file 字"):
        codec.parse(item)


def test_items_of_another_kind_are_one_line():
    with pytest.raises(DataError, match=r"2 items were given, not one table of series: set another input.kind"):
        CONFIG.fit(["a", "b"])


@pytest.mark.parametrize(
    ("longest", "given", "expected"),
    [
        (1000, {}, (336, 16, 8)),
        (40, {}, (40, 13, 6)),
        (1, {}, (2, 1, 1)),
        (40, {"history": 96}, (96, 16, 8)),
        (40, {"patch_length": 20}, (40, 20, 10)),
        (10, {"patch_length": 20}, (20, 20, 10)),
        (40, {"stride": 15}, (40, 15, 15)),
        (40, {"stride": 2}, (40, 13, 2)),
    ],
)
def test_sizes_that_are_left_out_are_chosen_for_a_table(longest, given, expected):
    shape = SeriesModalityConfig(**given).with_history(longest).shape
    assert (shape.history, shape.patch_length, shape.stride) == expected


@pytest.mark.parametrize("sizes", [(10, 4, 5), (3, 4, 4), ("auto", 4, 5)])
def test_patches_that_leave_steps_out_are_refused(sizes):
    with pytest.raises(ValidationError, match="must be in ascending order: patches cover the history"):
        SeriesModalityConfig(**dict(zip(("history", "patch_length", "stride"), sizes, strict=True)))
