"""Sound: an item is a recording or a file of one, an element a frame of a few hundredths of a second.

The frames are the sequence; the mel bands of a frame are the numbers of an element. A recording is kept as its samples.

Shape legend: B recordings, N samples, T elements, S log-mel frames of an element, K mel bands.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor

from regardant.data.item_files import ItemFile
from regardant.data.recordings import LARGEST, Recording, read_recording, write_recording
from regardant.errors import DataError, RunError
from regardant.modalities.base import Codec, ModalityConfig
from regardant.modalities.log_mel import LogMel
from regardant.modalities.pixels import data_url
from regardant.models.representations import RepresentationBuilder, Subsampling, sound_frames
from regardant.pictures import Layout
from regardant.training.checkpoints import write_atomically

STATISTICS = "sound.json"

LEAST_DEVIATION = 1e-6
"""Deviation under which a mel band counts as constant and is not divided."""

SHOWN_DECADES = 6.0
"""Decades of energy below the loudest that a spectrogram shows: 60 dB."""

WIDER_THAN_HIGH = 3.0
"""Width of a spectrogram on a page, as a multiple of its height."""


@dataclass(frozen=True)
class Statistics:
    """The mean and the deviation of each mel band over all frames of the training recordings."""

    mean: Sequence[float]
    deviation: Sequence[float]


class SoundModalityConfig(ModalityConfig):
    """Recordings as log-mel frames. All recordings of a run have one sample rate."""

    kind: Literal["sound"] = "sound"

    files = (STATISTICS,)
    suffixes = (".wav", ".flac")

    sample_rate: int = Field(16_000, gt=0)
    """Samples a second."""

    window_ms: float = Field(25.0, gt=0, le=1000)
    """Milliseconds of sound in a frame."""

    hop_ms: float = Field(10.0, gt=0, le=1000)
    """Milliseconds from the start of a frame to that of the next."""

    num_mels: int = Field(80, gt=0)
    """Mel bands of a frame."""

    subsampling: Subsampling = 4
    """Frames that the convolutions merge into one element."""

    @model_validator(mode="after")
    def bands_have_frequencies(self) -> Self:
        """Refuse windows without samples and bands without frequencies."""
        if min(self.window, self.hop) < 1:
            raise ValueError(
                f"window_ms ({self.window_ms:g}) and hop_ms ({self.hop_ms:g}) must each hold a sample of "
                f"{self.sample_rate:,} a second: raise them"
            )
        self.log_mel()
        return self

    @property
    def window(self) -> int:
        """Samples of a frame."""
        return round(self.sample_rate * self.window_ms / 1000)

    @property
    def hop(self) -> int:
        """Samples from the start of a frame to that of the next."""
        return round(self.sample_rate * self.hop_ms / 1000)

    def log_mel(self) -> LogMel:
        """Return the transform of sound to frames."""
        return LogMel(self.sample_rate, self.window, self.hop, self.num_mels)

    def fit(self, items: Iterable[Any]) -> "SoundCodec":
        """Return a codec with the statistics of the frames of training recordings."""
        unscaled = SoundCodec(self, Statistics([0.0] * self.num_mels, [1.0] * self.num_mels))
        count, total, squares = 0, np.zeros(self.num_mels), np.zeros(self.num_mels)
        for number, item in enumerate(items, 1):
            frames = unscaled.frames([unscaled.samples(item, number)])[0].double().numpy()
            count, total, squares = count + len(frames), total + frames.sum(0), squares + (frames**2).sum(0)
        if not count:
            raise DataError("there are no training recordings: give some")
        mean = total / count
        deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
        deviation[deviation < LEAST_DEVIATION] = 1.0
        return SoundCodec(self, Statistics(mean.tolist(), deviation.tolist()))

    def load(self, run: Path) -> "SoundCodec":
        try:
            statistics = Statistics(**json.loads((run / STATISTICS).read_text(encoding="utf-8")))
            if {len(statistics.mean), len(statistics.deviation)} != {self.num_mels}:
                raise ValueError(f"{len(statistics.mean)} mel bands, the recipe has {self.num_mels}")
        except (OSError, ValueError, TypeError) as error:
            raise RunError(f"{run / STATISTICS} is damaged ({error}): restore it or train again") from error
        return SoundCodec(self, statistics)


class SoundCodec(Codec):
    """Recordings of one sample rate to normalised log-mel frames."""

    unit = "frame"

    def __init__(self, config: SoundModalityConfig, statistics: Statistics) -> None:
        self.config, self.statistics = config, statistics
        self.log_mel = config.log_mel()
        self.mean, self.deviation = (torch.tensor(of) for of in (statistics.mean, statistics.deviation))
        self.stride = config.hop * config.subsampling
        """Samples from the start of an element to that of the next."""

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return samples [N] of 16 bits. Raises DataError for an item that is no recording of the run's sample rate."""
        return [self.samples(item, number) for number, item in enumerate(items, 1)]

    def parse(self, argument: str) -> Path:
        """Return the path of a .wav or .flac file, which `encode` reads."""
        return Path(argument)

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str:
        """Write the recording as a .wav file. Return its path."""
        path = folder / f"{name}.wav"
        write_recording(path, Recording(np.asarray(encoded), self.config.sample_rate))
        return str(path)

    def cut(self, encoded: NDArray[Any], length: int) -> NDArray[Any]:
        return encoded[: length * self.stride]

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the elements of recordings of so many samples. The last element may end in silence."""
        return -(-rows.astype(np.int64) // self.stride)

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return the normalised frames of elements [B, T, S * K]. An element of padding is NaN."""
        lengths = self.lengths(np.array([len(one) for one in encoded]))
        elements = self.frames(encoded).unflatten(1, (-1, self.config.subsampling)).flatten(2)
        padding = torch.arange(elements.shape[1]) >= torch.from_numpy(lengths)[:, None]
        return elements.masked_fill(padding[..., None], torch.nan)

    def representation(self) -> RepresentationBuilder:
        return sound_frames(self.config.num_mels, self.config.subsampling)

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        """Return the time in seconds at which each element begins: "0.00 s", "0.04 s", ... [T]."""
        (length,) = self.lengths(np.array([len(encoded)])).tolist()
        return [f"{number * self.stride / self.config.sample_rate:.2f} s" for number in range(length)]

    def layout(self, encoded: NDArray[Any]) -> Layout:
        """Return the elements side by side over the spectrogram: a column a frame, low mel bands below, the loudest
        white."""
        labels = self.labels(encoded)
        bands = self.log_energies([encoded])[0].T.flip(0)
        shades = (1 + (bands - bands.max()) / SHOWN_DECADES).clamp_min(0).numpy()
        return Layout(labels, 1, len(labels), data_url(shades[..., None]), len(labels) / WIDER_THAN_HIGH)

    def describe(self) -> str:
        element = 1000 * self.stride / self.config.sample_rate
        return (
            f"recordings of {self.config.sample_rate:,} samples a second in frames of {element:g} ms and "
            f"{self.config.num_mels} mel bands"
        )

    def save(self, run: Path) -> None:
        write_atomically(run / STATISTICS, json.dumps(asdict(self.statistics)) + "\n")

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

    def samples(self, item: Any, number: int) -> NDArray[np.int16]:
        """Return the samples of a recording or of a file. Messages call a recording "item NUMBER". Raises DataError."""
        name = str(item) if isinstance(item, ItemFile) else f"item {number}"
        recording = read_recording(item) if isinstance(item, ItemFile) else item
        if not isinstance(recording, Recording):
            raise DataError(
                f"{name} is of type {type(item).__name__}, not a recording: give the path of a .wav or .flac file, or "
                "another input.kind"
            )
        if recording.rate != self.config.sample_rate:
            raise DataError(
                f"{name} has {recording.rate:,} samples a second, the run's recordings {self.config.sample_rate:,}: "
                f"convert it, or train with input.sample_rate={recording.rate}"
            )
        if not len(recording.samples):
            raise DataError(f"{name} holds no sound: give a longer recording")
        return recording.samples
