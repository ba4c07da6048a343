"""Sound: an item is a recording or a file of one, an element a frame of a few hundredths of a second.

The frames are the sequence; the mel bands of a frame are the numbers of an element. A recording is kept as its samples.

Shape legend: B recordings, N samples, T elements, S log-mel frames of an element, K mel bands.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor

from regardant.data.recordings import LARGEST
from regardant.errors import ConfigError
from regardant.modalities.log_mel import LogMel
from regardant.modalities.pixels import data_url
from regardant.modalities.recordings import RecordingCodec, RecordingModalityConfig
from regardant.modalities.statistics import save_statistics, saved_statistics
from regardant.models.representations import RepresentationBuilder, Subsampling, sound_frames
from regardant.pictures import Layout

STATISTICS = "sound.json"

LEAST_DEVIATION = 1e-6
"""Standard deviation below which a mel band counts as constant and is not divided."""

SHOWN_DECADES = 6.0
"""Decades of energy below the loudest that a spectrogram shows: 60 dB."""

WIDER_THAN_HIGH = 3.0
"""Width of a spectrogram on a page, as a multiple of its height."""


WIDE_BAND = 16_000
"""Sample rate in Hz from which frames may have the largest number of mel bands."""

MEL_BANDS = (80, 40, 20, 10)
"""Numbers of mel bands to choose from. Below WIDE_BAND frames have at most 40."""


@dataclass(frozen=True)
class Statistics:
    """Mean and standard deviation of each mel band over all frames of training recordings, and their sample rate.

    The silent frames that only fill the last element of a recording do not count.
    """

    mean: Sequence[float]
    deviation: Sequence[float]
    sample_rate: int | None = None
    """Sample rate in Hz. None: a run of an earlier version, whose recipe sets the rate."""


class SoundModalityConfig(RecordingModalityConfig):
    """Recordings as log-mel frames."""

    kind: Literal["sound"] = "sound"

    files = (STATISTICS,)

    window_ms: float = Field(25.0, gt=0, le=1000)
    """Milliseconds of sound in a frame."""

    hop_ms: float = Field(10.0, gt=0, le=1000)
    """Milliseconds from the start of a frame to that of the next."""

    num_mels: int | None = Field(None, gt=0)
    """Mel bands of a frame. Empty: 80, or 40 below 16,000 samples a second; fewer where a band would have no
    frequency."""

    subsampling: Subsampling = 4
    """Frames that the convolutions merge into one element."""

    @model_validator(mode="after")
    def bands_have_frequencies(self) -> Self:
        """Refuse windows without samples and bands without frequencies."""
        if self.sample_rate is not None:
            self.log_mel(self.sample_rate, self.num_mels)
        return self

    def log_mel(self, sample_rate: int, num_mels: int | None = None) -> LogMel:
        """Return the transform of sound to frames, by default with as many mel bands as suit the sample rate.

        Raises ValueError for settings that the sample rate forbids.
        """
        window, hop = (round(sample_rate * length / 1000) for length in (self.window_ms, self.hop_ms))
        if min(window, hop) < 1:
            raise ValueError(
                f"window_ms ({self.window_ms:g}) and hop_ms ({self.hop_ms:g}) must each hold a sample at "
                f"{sample_rate:,} samples a second: raise them"
            )
        if num_mels is not None:
            return LogMel(sample_rate, window, hop, num_mels)
        *more, fewest = MEL_BANDS if sample_rate >= WIDE_BAND else MEL_BANDS[1:]
        for count in more:
            with suppress(ValueError):
                return LogMel(sample_rate, window, hop, count)
        return LogMel(sample_rate, window, hop, fewest)

    def fit(self, items: Iterable[Any]) -> "SoundCodec":
        """Return a codec with the statistics of the frames of training recordings."""
        unscaled, count, total, squares = None, 0, np.zeros(1), np.zeros(1)
        for recording in self.alike(items):
            unscaled = unscaled or self._unscaled(recording.rate)
            begun = -(-len(recording.samples) // unscaled.log_mel.hop)  # later frames only fill the last element
            frames = unscaled.frames([recording.samples])[0, :begun].double().numpy()
            count, total, squares = count + len(frames), total + frames.sum(0), squares + (frames**2).sum(0)
        assert unscaled is not None
        mean = total / count
        deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
        deviation[deviation < LEAST_DEVIATION] = 1.0
        return SoundCodec(self, Statistics(mean.tolist(), deviation.tolist(), unscaled.sample_rate))

    def load(self, run: Path) -> "SoundCodec":
        with saved_statistics(run / STATISTICS) as saved:
            statistics = Statistics(**saved)
            bands = {len(statistics.mean), len(statistics.deviation), self.num_mels or len(statistics.mean)}
            if len(bands) > 1:
                raise ValueError(f"{len(statistics.mean)} mel bands, the recipe has {self.num_mels}")
            return SoundCodec(self, statistics)

    def _unscaled(self, sample_rate: int) -> "SoundCodec":
        """Return a codec of a sample rate that does not normalise frames."""
        try:
            num_mels = self.log_mel(sample_rate, self.num_mels).num_mels
        except ValueError as error:
            raise ConfigError(f"input: {error}") from error
        return SoundCodec(self, Statistics([0.0] * num_mels, [1.0] * num_mels, sample_rate))


class SoundCodec(RecordingCodec):
    """Recordings of one sample rate to normalised log-mel frames."""

    unit = "frame"

    def __init__(self, config: SoundModalityConfig, statistics: Statistics) -> None:
        sample_rate = statistics.sample_rate or config.sample_rate
        if sample_rate is None:
            raise ValueError("no sample rate")
        self.config, self.statistics, self.sample_rate = config, statistics, sample_rate
        self.log_mel = config.log_mel(sample_rate, len(statistics.mean))
        self.mean, self.deviation = (torch.tensor(of) for of in (statistics.mean, statistics.deviation))
        self.stride = self.log_mel.hop * config.subsampling
        """Samples from the start of an element to that of the next."""

    def cut(self, encoded: NDArray[Any], length: int) -> NDArray[Any]:
        return encoded[: length * self.stride]

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of elements of each recording, given its samples. The last element may end in silence."""
        return -(-rows.astype(np.int64) // self.stride)

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return the normalised frames of elements [B, T, S * K]. An element of padding is NaN."""
        elements = self.frames(encoded).unflatten(1, (-1, self.config.subsampling)).flatten(2)
        return self.padded(elements, encoded)

    def representation(self) -> RepresentationBuilder:
        return sound_frames(self.log_mel.num_mels, self.config.subsampling)

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        """Return the time in seconds at which each element begins: "0.00 s", "0.04 s", ... [T]."""
        (length,) = self.lengths(np.array([len(encoded)])).tolist()
        return [f"{number * self.stride / self.sample_rate:.2f} s" for number in range(length)]

    def layout(self, encoded: NDArray[Any]) -> Layout:
        """Return the elements side by side over the spectrogram: one column for each frame, low mel bands below, the
        loudest energy white."""
        labels = self.labels(encoded)
        bands = self.log_energies([encoded])[0].T.flip(0)
        shades = (1 + (bands - bands.max()) / SHOWN_DECADES).clamp_min(0).numpy()
        return Layout(labels, 1, len(labels), data_url(shades[..., None]), len(labels) / WIDER_THAN_HIGH)

    def describe(self) -> str:
        element = 1000 * self.stride / self.sample_rate
        return (
            f"recordings of {self.sample_rate:,} samples a second in frames of {element:.3g} ms and "
            f"{self.log_mel.num_mels} mel bands"
        )

    def save(self, run: Path) -> None:
        save_statistics(run / STATISTICS, self.statistics)

    def frames(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return normalised log-mel frames [B, T * S, K] of samples."""
        return (self.log_energies(encoded) - self.mean) / self.deviation

    def log_energies(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return log-mel frames [B, T * S, K] of samples, silent where a recording has ended."""
        longest = int(self.lengths(np.array([max(len(one) for one in encoded)]))[0])
        block = torch.zeros(len(encoded), longest * self.stride)
        for row, one in zip(block, encoded, strict=True):
            row[: len(one)] = torch.from_numpy(one.astype(np.float32)) / LARGEST
        return self.log_mel(block)
