"""Videos: an item is an array of frames or a file of one, an element a tubelet, a square patch over a few frames.

Shape legend: F frames, H height, W width, C channels, N videos, T tubelets.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from regardant.data.item_files import ItemFile
from regardant.errors import ConfigError, DataError
from regardant.modalities.base import Codec, ModalityConfig
from regardant.modalities.pixels import MODES, Pixels, as_pixels, data_url, moments, name_of, normalised, read_array
from regardant.modalities.statistics import save_statistics, saved_statistics
from regardant.models.representations import RepresentationBuilder, TubeletShape, tubelets
from regardant.pictures import Layout

STATISTICS = "video.json"

FILES = "the path of a .npy file"
"""Files that can be read, for messages."""


@dataclass(frozen=True)
class Statistics:
    """Size of a run's videos, and mean and standard deviation of each channel over the training videos."""

    frames: int
    height: int
    width: int
    channels: int
    mean: Sequence[float]
    deviation: Sequence[float]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Frames, height, width and channels."""
        return self.frames, self.height, self.width, self.channels


class VideoModalityConfig(ModalityConfig):
    """Videos as tubelets. All videos of a run have the same size and number of frames."""

    kind: Literal["video"] = "video"

    files = (STATISTICS,)
    first_epochs = 150
    suffixes = (".npy",)

    patch_size: int = Field(16, gt=0)
    """Side of a tubelet in pixels; both sides of a frame must be multiples of it."""

    tubelet_frames: int = Field(2, gt=0)
    """Frames of a tubelet; the number of frames must be a multiple of it."""

    def fit(self, items: Iterable[Any]) -> "VideoCodec":
        shape: tuple[int, ...] = ()
        count, total, squares = 0, np.zeros(1), np.zeros(1)
        for number, item in enumerate(items, 1):
            frames = as_frames(item, name_of(item, number))
            shape, count = shape or frames.shape, count + 1
            _require_size(frames, shape, name_of(item, number), "the first item")
            wide = frames.astype(np.float64)
            total, squares = total + wide.mean((0, 1, 2)), squares + (wide**2).mean((0, 1, 2))
        if not count:
            raise DataError("there are no training videos: give some")
        length, height, width, channels = shape
        for name, side, multiple in (
            ("patch_size", math.gcd(height, width), self.patch_size),
            ("tubelet_frames", length, self.tubelet_frames),
        ):
            if side % multiple:
                allowed = ", ".join(str(one) for one in range(1, side + 1) if side % one == 0)
                raise ConfigError(f"input.{name}: given {multiple}; videos of {_size(shape)} allow {allowed}")
        return self._codec(Statistics(length, height, width, channels, *moments(count, total, squares)))

    def load(self, run: Path) -> "VideoCodec":
        with saved_statistics(run / STATISTICS) as saved:
            statistics = Statistics(**saved)
        return self._codec(statistics)

    def require_readable(self, file: ItemFile) -> None:
        read_array(file, FILES)

    def _codec(self, statistics: Statistics) -> "VideoCodec":
        return VideoCodec(statistics, TubeletShape(self.tubelet_frames, self.patch_size, statistics.channels))


class VideoCodec(Codec):
    """Videos of one size to normalised pixels."""

    unit = "tubelet"
    item_name = "a video"
    shorter_by = ", or input.patch_size or input.tubelet_frames"
    equal_shapes = True

    def __init__(self, statistics: Statistics, tubelet: TubeletShape) -> None:
        self.statistics, self.tubelet = statistics, tubelet
        self.times = statistics.frames // tubelet.frames
        self.rows, self.columns = statistics.height // tubelet.side, statistics.width // tubelet.side

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return pixels [F, H, W, C] from 0 to 1. Raises DataError for an item that is no video of the run's size."""
        return [self._checked(item, name_of(item, number)) for number, item in enumerate(items, 1)]

    def parse(self, argument: str) -> Pixels:
        """Return the video in a .npy file. Raises DataError."""
        return self._checked(Path(argument), argument)

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str:
        """Write the video as a .npy file. Return its path."""
        path = folder / f"{name}.npy"
        np.save(path, encoded)
        return str(path)

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of tubelets of each video, given its number of frames."""
        return rows.astype(np.int64) // self.tubelet.frames * self.rows * self.columns

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return pixels [N, F, H, W, C] less the mean, divided by the standard deviation."""
        return normalised(encoded, self.statistics.mean, self.statistics.deviation)

    def representation(self) -> RepresentationBuilder:
        return tubelets(self.tubelet)

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        """Return "frames 1 to 2, row 1, column 1", ... in reading order [T]."""
        places = np.ndindex(self.times, self.rows, self.columns)
        return [f"{self._frames_at(time)}, row {row + 1}, column {column + 1}" for time, row, column in places]

    def layout(self, encoded: NDArray[Any]) -> Layout:
        """Return the tubelets over the frames, earlier frames above: a tubelet shows its frames side by side."""
        frames, side = self.tubelet.frames, self.tubelet.side
        blocks = encoded.reshape(self.times, frames, self.rows, side, self.columns, side, -1)
        picture = blocks.transpose(0, 2, 3, 4, 1, 5, 6)  # times, rows, pixels down, columns, frames, pixels across
        picture = picture.reshape(self.times * self.rows * side, self.columns * frames * side, -1)
        return Layout(self.labels(encoded), self.times * self.rows, self.columns, data_url(picture), 1 / frames)

    def describe(self) -> str:
        count, side = self.times * self.rows * self.columns, self.tubelet.side
        return (
            f"videos of {self.statistics.frames} frames of {_size(self.statistics.shape[1:])} in {count} tubelets of "
            f"{self.tubelet.frames} x {side} x {side}"
        )

    def save(self, run: Path) -> None:
        save_statistics(run / STATISTICS, self.statistics)

    def _frames_at(self, time: int) -> str:
        first, last = time * self.tubelet.frames + 1, (time + 1) * self.tubelet.frames
        return f"frame {first}" if first == last else f"frames {first} to {last}"

    def _checked(self, item: Any, name: str) -> Pixels:
        frames = as_frames(item, name)
        _require_size(frames, self.statistics.shape, name, "every video of the run")
        return frames


def as_frames(item: Any, name: str) -> Pixels:
    """Return a video as pixels [F, H, W, C] from 0 to 1.

    Args:
        item: an array [F, H, W] or [F, H, W, C] of uint8 (0 to 255) or float (0 to 1), or a .npy file that holds one.
        name: name of the item in messages.

    Raises:
        DataError: the item is no such array, or the file cannot be read.
    """
    array = read_array(item, FILES) if isinstance(item, ItemFile) else item
    if not isinstance(array, np.ndarray):
        raise DataError(f"{name} is of type {type(array).__name__}, not a video: give an array, or another input.kind")
    frames = array[..., None] if array.ndim == 3 else array
    if frames.ndim != 4 or frames.shape[3] not in MODES or not frames.size:
        raise DataError(
            f"{name} is an array of {_size(array.shape)}: a video has frames x height x width, or these and channels "
            "(1 to 4)"
        )
    length, height, width, channels = frames.shape
    return as_pixels(frames.reshape(length * height, width, channels), name).reshape(frames.shape)


def _require_size(frames: Pixels, expected: tuple[int, ...], name: str, other: str) -> None:
    if frames.shape != expected:
        raise DataError(f"{name} is {_size(frames.shape)}, {other} is {_size(expected)}: give videos of one size")


def _size(shape: Sequence[int]) -> str:
    """Return the sizes of an array joined by x, without a single channel."""
    return " x ".join(map(str, shape[:-1] if shape[-1:] == (1,) else shape)) or "one number"
