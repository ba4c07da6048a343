"""Base of the codecs of recordings: an item is a recording or a file of one, kept as its samples.

Shape legend: B recordings, N samples, T elements.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from regardant.data.item_files import ItemFile, shown_name
from regardant.data.recordings import Recording, read_recording, write_recording
from regardant.errors import DataError
from regardant.modalities.base import Codec, PartModalityConfig


class RecordingModalityConfig(PartModalityConfig):
    """Base of modalities of recordings. All recordings of a run have one sample rate."""

    suffixes = (".wav", ".flac")
    reads_whole = True

    sample_rate: int | None = Field(None, gt=0)
    """Sample rate in Hz. Empty: that of the training recordings."""

    def require_readable(self, file: ItemFile) -> None:
        read_recording(file)

    def alike(self, items: Iterable[Any]) -> Iterator[Recording]:
        """Yield training recordings. Raises DataError if their sample rates differ or there are none."""
        rate = None
        for number, item in enumerate(items, 1):
            name, recording = read(item, number)
            if self.sample_rate is not None:
                require_rate(name, recording, self.sample_rate)
            rate = rate or recording.rate
            if recording.rate != rate:
                raise DataError(
                    f"{name} has {recording.rate:,} samples a second, the recordings before it {rate:,}: convert all "
                    "to one rate"
                )
            yield recording
        if rate is None:
            raise DataError("there are no training recordings: give some")


class RecordingCodec(Codec):
    """Base of codecs of recordings of one sample rate."""

    sample_rate: int
    """Sample rate in Hz."""

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return samples [N] of 16 bits. Raises DataError for an item that is no recording of the run's sample rate."""
        return [self._samples(*read(item, number)) for number, item in enumerate(items, 1)]

    def parse(self, argument: str) -> Path:
        """Return the path of a .wav or .flac file, which `encode` reads."""
        return Path(argument)

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str:
        """Write the recording as a .wav file. Return its path."""
        path = folder / f"{name}.wav"
        write_recording(path, Recording(np.asarray(encoded), self.sample_rate))
        return str(path)

    def padded(self, elements: Tensor, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return the elements [B, T, ...] of recordings, NaN after the end of each."""
        lengths = torch.from_numpy(self.lengths(np.array([len(one) for one in encoded])))
        padding = torch.arange(elements.shape[1]) >= lengths[:, None]
        return elements.masked_fill(padding[..., None], torch.nan)

    def _samples(self, name: str, recording: Recording) -> NDArray[np.int16]:
        require_rate(name, recording, self.sample_rate)
        return recording.samples


def read(item: Any, number: int) -> tuple[str, Recording]:
    """Return the name of an item in messages ("item NUMBER" if it is no file) and its sound. Raises DataError."""
    name = shown_name(item) if isinstance(item, ItemFile) else f"item {number}"
    recording = read_recording(item) if isinstance(item, ItemFile) else item
    if not isinstance(recording, Recording):
        raise DataError(
            f"{name} is of type {type(item).__name__}, not a recording: give the path of a .wav or .flac file, or "
            "another input.kind"
        )
    if not len(recording.samples):
        raise DataError(f"{name} holds no sound: give a longer recording")
    return name, recording


def require_rate(name: str, recording: Recording, rate: int) -> None:
    """Raise DataError for a recording of another sample rate."""
    if recording.rate != rate:
        raise DataError(
            f"{name} has {recording.rate:,} samples a second, the run's recordings {rate:,}: convert it, or train with "
            f"input.sample_rate={recording.rate}"
        )
