"""Windows of series: a history of one column with the values after it, which are to be forecast.

Shape legend: N rows, C columns, B windows, L steps of history, H steps of the horizon.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from regardant.errors import DataError
from regardant.modalities import Codec
from regardant.modalities.series import SeriesCodec
from regardant.tasks.items.data import EncodedItems, ItemBatch, ItemBatches, Planned
from regardant.tasks.items.job import ItemsJob


class Windows(Sequence[NDArray[Any]]):
    """Windows [L + H] of the columns of a table [N, C]: those that begin at its first row, then at its second."""

    def __init__(self, values: NDArray[Any], length: int) -> None:
        self.by_column, self.length = np.array(values).T.copy(), length
        self.columns = len(self.by_column)
        self.starts = max(0, len(values) - length + 1)

    def __len__(self) -> int:
        return self.starts * self.columns

    def __getitem__(self, index: Any) -> Any:
        start, column = divmod(range(len(self))[index], self.columns)
        return self.by_column[column, start : start + self.length]


def windows_of(values: NDArray[Any], length: int) -> EncodedItems:
    """Return the windows of a table [N, C]. Raises DataError if it has too few rows for one."""
    windows = Windows(values, length)
    if not len(windows):
        raise DataError(f"{len(values):,} rows are too few for a history and a horizon of {length}: give more rows")
    return EncodedItems(windows, np.full(len(windows), length), np.zeros(len(windows), dtype=np.int64))


class ForecastBatch(ItemBatch):
    """Histories [B, L], and the values after them as targets [B, H, 1]."""

    def part(self, number: int, parts: int) -> Self:
        share = super().part(number, parts)
        return replace(share, count=share.targets.numel())


class WindowBatches(ItemBatches):
    """Batches of windows."""

    codec: SeriesCodec

    @property
    def targets_per_epoch(self) -> int:
        """Number of values to forecast in an epoch."""
        return int((self.split.rows - self.codec.shape.history).sum())

    def load(self, planned: Planned) -> ForecastBatch:
        windows = np.stack(self.arrays(planned))
        targets = torch.from_numpy(windows[:, self.codec.shape.history :, None])
        return ForecastBatch({"input": self.codec.collate(list(windows))}, targets, targets.numel())


class ForecastingJob(ItemsJob):
    """Job that trains on windows."""

    def batches_of(self, split: EncodedItems, codec: Codec, *, batch_tokens: int, max_length: int) -> WindowBatches:
        return WindowBatches(split, codec, batch_tokens=batch_tokens, max_length=max_length, seed=self.seed)
