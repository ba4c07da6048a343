"""Series: an item is columns of numbers over time, an element a patch of consecutive steps of one column.

Each column is a sequence of its own (channel independence: Nie et al. 2023, https://arxiv.org/abs/2211.14730, section
3.1), scaled by the mean and the standard deviation of its training rows.

Shape legend: N rows, C columns, L steps of history, T patches.
"""

import csv
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor

from regardant.data.series import Series, read_series, require_column
from regardant.data.tables import first_row
from regardant.errors import DataError
from regardant.modalities.base import Codec, ModalityConfig
from regardant.modalities.statistics import save_statistics, saved_statistics
from regardant.models.representations import RepresentationBuilder, SeriesShape, series_patches

STATISTICS = "series.json"

HISTORY, PATCH_LENGTH = 336, 16
"""Steps of a history and of a patch where a table is long enough (Nie et al. 2023, section 4.1: PatchTST/42).

Here these make 41 patches: see `models.representations.series`."""

LEAST_DEVIATION = 1e-12
"""Standard deviation, as a share of a column's largest value, below which it counts as constant and is not divided."""


@dataclass(frozen=True)
class Statistics:
    """Columns of a run, with the mean and the standard deviation of each over the training rows."""

    time: str
    """Name of the column of times."""
    names: Sequence[str]
    mean: Sequence[float]
    deviation: Sequence[float]
    season: int | None = None
    """Number of rows after which values may repeat (`Series.season`)."""

    @classmethod
    def measured(cls, series: Series) -> "Statistics":
        """Return the statistics of training rows."""
        deviation = series.values.std(0)
        deviation[deviation <= LEAST_DEVIATION * np.abs(series.values).max(0)] = 1.0
        mean = series.values.mean(0).tolist()
        return cls(series.time, list(series.names), mean, deviation.tolist(), series.season)


class SeriesModalityConfig(ModalityConfig):
    """Series as patches of their history."""

    kind: Literal["series"] = "series"

    files = (STATISTICS,)
    suffixes = (".csv", ".tsv", ".gz", ".zst")

    history: Annotated[int, Field(gt=1)] | Literal["auto"] = "auto"
    """Steps that the model reads. auto: 336, or as many as a short table allows."""

    patch_length: Annotated[int, Field(gt=0)] | Literal["auto"] = "auto"
    """Steps of a patch. auto: 16, or a third of a short history."""

    stride: Annotated[int, Field(gt=0)] | Literal["auto"] = "auto"
    """Steps from the start of a patch to that of the next. auto: half of patch_length."""

    instance_norm: bool = True
    """Normalise each history by its own mean and standard deviation, and undo this in the forecast."""

    @model_validator(mode="after")
    def patches_cover_the_history(self) -> Self:
        """Refuse patches that leave steps out, or that are longer than the history."""
        if (sizes := self._sizes) != sorted(sizes, reverse=True):
            raise ValueError(
                f"stride ({self.stride}), patch_length ({self.patch_length}) and history ({self.history}) must be in "
                "ascending order: patches cover the history"
            )
        return self

    def with_history(self, longest: int) -> Self:
        """Return the configuration with all `auto` sizes chosen, for a history of at most `longest` steps."""
        history = max(2, min(HISTORY, longest), *self._sizes) if self.history == "auto" else self.history
        least = 1 if self.stride == "auto" else self.stride
        of_patch = max(min(PATCH_LENGTH, history // 3), least) if self.patch_length == "auto" else self.patch_length
        stride = max(1, of_patch // 2) if self.stride == "auto" else self.stride
        sizes = {"history": history, "patch_length": of_patch, "stride": stride}
        return self.model_copy(update=sizes)

    @property
    def shape(self) -> SeriesShape:
        """Sizes of history and patches, none of which may be `auto`."""
        history, patch_length, stride = self._sizes
        return SeriesShape(history, patch_length, stride, self.instance_norm)

    @property
    def _sizes(self) -> list[int]:
        """The sizes that are not `auto`."""
        return [size for size in (self.history, self.patch_length, self.stride) if isinstance(size, int)]

    def fit(self, items: Iterable[Any]) -> "SeriesCodec":
        """Return a codec with the statistics of the one training item, all training rows. Raises DataError."""
        given = list(items)
        if len(given) != 1 or not isinstance(given[0], Series):
            raise DataError(f"{len(given):,} items were given, not one table of series: set another input.kind")
        return SeriesCodec(Statistics.measured(given[0]), self.shape)

    def load(self, run: Path) -> "SeriesCodec":
        with saved_statistics(run / STATISTICS) as saved:
            statistics = Statistics(**saved)
        return SeriesCodec(statistics, self.shape)


class SeriesCodec(Codec):
    """Tables to scaled numbers, and histories of single columns to inputs of a model."""

    unit = "patch"
    item_name = "a history"
    shorter_by = ", or input.stride"

    def __init__(self, statistics: Statistics, shape: SeriesShape) -> None:
        self.statistics, self.shape = statistics, shape

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return scaled numbers [N, C]. Raises DataError for a column that the run does not have."""
        return [self._scaled(item).astype(np.float32) for item in items]

    def parse(self, argument: str) -> Series:
        """Return the columns of the run from a table, or the column of `FILE:COLUMN`. Raises DataError."""
        path, names = Path(argument), list(self.statistics.names)
        if not os.path.isfile(path) and ":" in argument:
            file, _, column = argument.rpartition(":")
            require_column(f"the run of {file}", column, names)
            path, names = Path(file), [column]
        time = self.statistics.time
        return read_series(path, time if time in (first_row(path) or []) else None, names)

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str:
        """Write all columns of a table as a .csv file, with row numbers as times. Return its path."""
        path = folder / f"{name}.csv"
        rows = self.restored(encoded.T, self.statistics.names).T.tolist()
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([self.statistics.time, *self.statistics.names])
            writer.writerows([number, *row] for number, row in enumerate(rows))
        return str(path)

    def latest(self, series: Series) -> list[NDArray[Any]]:
        """Return the scaled history of each column, up to its last row. Raises DataError for too few rows."""
        if len(series) < self.shape.history:
            raise DataError(
                f"a table of {len(series):,} rows was given, and the model reads {self.shape.history}: give more rows"
            )
        (scaled,) = self.encode([series])
        return list(scaled[-self.shape.history :].T)

    def repeated(self) -> dict[str, int]:
        """Return the number of values that each naive forecast repeats, by name: one, and a season of the history."""
        season = self.statistics.season
        return {"last value": 1} | (
            {f"last {season} values": season} if season and season <= self.shape.history else {}
        )

    def restored(self, scaled: NDArray[Any], names: Sequence[str]) -> NDArray[np.float64]:
        """Return scaled numbers of columns [C, ...] in their original units."""
        mean, deviation = (self._of(names, which) for which in (self.statistics.mean, self.statistics.deviation))
        further = (len(names), *[1] * (scaled.ndim - 1))
        return mean.reshape(further) + deviation.reshape(further) * scaled

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of patches of each history, which is the same for all."""
        return np.full(len(rows), self.shape.patches, dtype=np.int64)

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return the first L steps of one column each [B, L]."""
        return torch.from_numpy(np.stack([one[: self.shape.history] for one in encoded]))

    def representation(self) -> RepresentationBuilder:
        return series_patches(self.shape)

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        """Return the steps of each patch [T], counted from the step after the history."""
        shape = self.shape
        starts = np.arange(shape.patches) * shape.stride - shape.padding - shape.history
        return [f"{max(start, -shape.history)} to {start + shape.patch_length - 1}" for start in starts.tolist()]

    def describe(self) -> str:
        shape, names = self.shape, self.statistics.names
        return (
            f"{len(names)} series, {shape.history} steps of history in {shape.patches} patches of {shape.patch_length}"
        )

    def save(self, run: Path) -> None:
        save_statistics(run / STATISTICS, self.statistics)

    def _scaled(self, series: Series) -> NDArray[np.float64]:
        for name in series.names:
            require_column("the run", name, self.statistics.names)
        mean, deviation = (self._of(series.names, which) for which in (self.statistics.mean, self.statistics.deviation))
        scaled: NDArray[np.float64] = (series.values - mean) / deviation
        return scaled

    def _of(self, names: Sequence[str], numbers: Sequence[float]) -> NDArray[np.float64]:
        known = dict(zip(self.statistics.names, numbers, strict=True))
        return np.array([known[name] for name in names])
