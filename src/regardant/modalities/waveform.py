"""Raw sound at several scales: an item is a recording or a file of one, an element a block of samples of one scale.

A scale of s keeps every s-th sample. Frequencies above half of its sample rate are filtered out first, since they
would appear as lower ones (aliasing: Oppenheim and Schafer, "Discrete-Time Signal Processing", section 4.6.1).

Shape legend: B recordings, N samples of a recording, T blocks, S samples of a block.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, field_validator
from torch import Tensor

from regardant.data.recordings import LARGEST
from regardant.modalities.recordings import RecordingCodec, RecordingModalityConfig
from regardant.modalities.statistics import save_statistics, saved_statistics
from regardant.models.representations import RepresentationBuilder, WaveformShape, waveform_blocks

STATISTICS = "waveform.json"

LEAST_DEVIATION = 1e-6
"""Root mean square below which a scale counts as silent and is not divided."""


@dataclass(frozen=True)
class Statistics:
    """Sample rate of the training recordings, and the root mean square of their samples at each scale."""

    sample_rate: int
    deviation: Sequence[float]


class WaveformModalityConfig(RecordingModalityConfig):
    """Recordings as blocks of raw samples at several scales."""

    kind: Literal["waveform"] = "waveform"

    files = (STATISTICS,)

    scales: tuple[int, ...] = Field((16, 4, 1), min_length=1)
    """Decimation factor of each scale, coarsest scale first: 16 keeps every 16th sample, after a low-pass filter. Each
    factor is a multiple of the next."""

    block: int = Field(160, ge=10)
    """Samples of an element, at its own scale."""

    @field_validator("scales")
    @classmethod
    def scales_divide(cls, scales: tuple[int, ...]) -> tuple[int, ...]:
        """Refuse scales that do not divide each other."""
        if min(scales) < 1 or any(coarse <= fine or coarse % fine for coarse, fine in pairwise(scales)):
            raise ValueError(
                f"given {list(scales)}; allowed: numbers from 1 on, each a multiple of a smaller next one: [16, 4, 1]"
            )
        return scales

    @property
    def shape(self) -> WaveformShape:
        """The sizes of blocks and scales."""
        return WaveformShape(self.block, self.scales)

    def fit(self, items: Iterable[Any]) -> "WaveformCodec":
        """Return a codec with the root mean square of the samples of training recordings at each scale."""
        rate, count, squares = 0, 0, np.zeros(len(self.scales))
        for recording in self.alike(items):
            scaled = [decimate(recording.samples[None] / LARGEST, scale) for scale in self.scales]
            squares += [np.square(samples).mean() * len(recording.samples) for samples in scaled]
            rate, count = recording.rate, count + len(recording.samples)
        deviation = np.sqrt(squares / count)
        deviation[deviation < LEAST_DEVIATION] = 1.0
        return WaveformCodec(self.shape, Statistics(rate, deviation.tolist()))

    def load(self, run: Path) -> "WaveformCodec":
        with saved_statistics(run / STATISTICS) as saved:
            statistics = Statistics(**saved)
            if len(statistics.deviation) != len(self.scales):
                raise ValueError(f"{len(statistics.deviation)} scales, the recipe has {len(self.scales)}")
        return WaveformCodec(self.shape, statistics)


class WaveformCodec(RecordingCodec):
    """Recordings of one sample rate to blocks of samples."""

    unit = "block"
    item_name = "a recording"
    shorter_by = ", or take fewer input.scales"

    def __init__(self, shape: WaveformShape, statistics: Statistics) -> None:
        self.shape, self.statistics, self.sample_rate = shape, statistics, statistics.sample_rate

    def cut(self, encoded: NDArray[Any], length: int) -> NDArray[Any]:
        """Return the first whole periods of a recording. Raises DataError if a period has more than `length` blocks."""
        blocks = len(self.shape.order)
        kept = self.whole(encoded, blocks, length, f" in {self.shape.period / self.sample_rate:g} s")
        return kept[: length // blocks * self.shape.period]

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of blocks of each recording, given its samples. The last period may end in silence."""
        return -(-rows.astype(np.int64) // self.shape.period) * len(self.shape.order)

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return the normalised blocks of recordings [B, T, S]. A block of padding is NaN."""
        periods = -(-max(len(one) for one in encoded) // self.shape.period)
        whole = np.zeros((len(encoded), periods * self.shape.period), np.float32)
        for row, one in zip(whole, encoded, strict=True):
            row[: len(one)] = one.astype(np.float32) / LARGEST
        scales = [
            (decimate(whole, scale) / np.float32(deviation)).reshape(len(whole), periods, -1, self.shape.block)
            for scale, deviation in zip(self.shape.scales, self.statistics.deviation, strict=True)
        ]
        blocks = np.stack([scales[scale][:, :, number] for scale, number in self.shape.order], 2)
        return self.padded(torch.from_numpy(blocks).flatten(1, 2), encoded)

    def representation(self) -> RepresentationBuilder:
        return waveform_blocks(self.shape)

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        """Return the time at which each block begins, and its scale: "0.00 s 1:16", ... [T]."""
        (length,) = self.lengths(np.array([len(encoded)])).tolist()
        starts = []
        for period in range(length // len(self.shape.order)):
            for scale, number in self.shape.order:
                start = period * self.shape.period + number * self.shape.block * self.shape.scales[scale]
                starts.append(f"{start / self.sample_rate:.2f} s 1:{self.shape.scales[scale]}")
        return starts

    def describe(self) -> str:
        scales = ", ".join(str(scale) for scale in self.shape.scales)
        return (
            f"recordings of {self.sample_rate:,} samples a second in blocks of {self.shape.block} samples, of which "
            f"every {scales} is kept"
        )

    def save(self, run: Path) -> None:
        save_statistics(run / STATISTICS, self.statistics)


def decimate(samples: NDArray[Any], factor: int) -> NDArray[Any]:
    """Return every `factor`-th sample of recordings [B, N], after a low-pass filter below half of the new sample rate.

    Beyond its ends, a recording is silent.
    """
    if factor == 1:
        return samples
    from scipy.signal import resample_poly  # the import takes a second: not at the start of every task

    kept: NDArray[Any] = resample_poly(samples, 1, factor, axis=1)
    return kept
