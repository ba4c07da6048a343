"""Images: an item is an array or a file, an element a square patch.

Shape legend: H height, W width, C channels, N images, T patches.
"""

import base64
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from regardant.data.item_files import ItemFile, read_item_file, unreadable
from regardant.errors import ConfigError, DataError, RunError
from regardant.modalities.base import Codec, PartModalityConfig
from regardant.models.representations import RepresentationBuilder, patches
from regardant.pictures import Layout
from regardant.training.checkpoints import write_atomically

STATISTICS = "image.json"

Pixels = NDArray[np.float32]
"""[H, W, C] from 0 (black) to 1 (white)."""

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
"""Pillow's names of 8-bit images, by number of channels."""

GREATEST_BYTE = 255

FILES = "the path of a PNG, JPEG or .npy file"
"""Files that are read, in messages."""


@dataclass(frozen=True)
class Statistics:
    """The size of a run's images, and the mean and deviation of each channel over the training images."""

    height: int
    width: int
    channels: int
    mean: Sequence[float]
    deviation: Sequence[float]

    @classmethod
    def measured(cls, images: Iterable[Pixels]) -> "Statistics":
        """Return the statistics of images of one size. Raises DataError if sizes differ or there is no image."""
        shape: tuple[int, ...] = ()
        count, total, squares = 0, np.zeros(1), np.zeros(1)
        for count, pixels in enumerate(images, 1):
            shape = shape or pixels.shape
            _require_size(pixels, shape, f"item {count}", "the first item")
            wide = pixels.astype(np.float64)
            total, squares = total + wide.mean((0, 1)), squares + (wide**2).mean((0, 1))
        if not count:
            raise DataError("there are no training images: give some")
        mean = total / count
        deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
        deviation[deviation < 1e-6] = 1.0  # of a channel that is the same everywhere
        height, width, channels = shape
        return cls(height, width, channels, mean.tolist(), deviation.tolist())

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        return self.height, self.width, self.channels


class ImageModalityConfig(PartModalityConfig):
    """Images as patches. All images of a run have one size."""

    kind: Literal["image"] = "image"

    files = (STATISTICS,)
    suffixes = (".png", ".jpg", ".jpeg", ".npy")

    patch_size: int = Field(16, gt=0)
    """Side of a patch in pixels; both sides of an image must be multiples of it."""

    def fit(self, items: Iterable[Any]) -> "ImageCodec":
        statistics = Statistics.measured(_alike(items))
        if statistics.height % self.patch_size or statistics.width % self.patch_size:
            both = np.gcd(statistics.height, statistics.width)
            allowed = ", ".join(str(side) for side in range(1, both + 1) if both % side == 0)
            raise ConfigError(
                f"input.patch_size: given {self.patch_size}; images of {_size(statistics.shape)} allow {allowed}"
            )
        return ImageCodec(statistics, self.patch_size)

    def load(self, run: Path) -> "ImageCodec":
        try:
            statistics = Statistics(**json.loads((run / STATISTICS).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise RunError(f"{run / STATISTICS} is damaged ({error}): restore it or train again") from error
        return ImageCodec(statistics, self.patch_size)


class ImageCodec(Codec):
    """Images of one size to normalised pixels."""

    unit = "patch"

    def __init__(self, statistics: Statistics, patch_size: int) -> None:
        self.statistics, self.patch_size = statistics, patch_size
        self.rows, self.columns = statistics.height // patch_size, statistics.width // patch_size

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return pixels [H, W, C] from 0 to 1. Raises DataError for an item that is no image of the run's size."""
        return [self._checked(item, f"item {number}") for number, item in enumerate(items, 1)]

    def parse(self, argument: str) -> Pixels:
        """Return the image in a PNG, JPEG or .npy file. Raises DataError."""
        return self._checked(Path(argument), argument)

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str:
        """Write the image as a PNG of 8 bits a channel. Return its path."""
        path = folder / f"{name}.png"
        path.write_bytes(as_png(encoded))
        return str(path)

    def cut(self, encoded: NDArray[Any], length: int) -> NDArray[Any]:
        """Return the image whole. Raises DataError if it has more than `length` patches."""
        if (count := self.rows * self.columns) > length:
            raise DataError(
                f"an image has {count} patches, of which at most {length} are read: raise model.max_length and "
                "training.batch_tokens, or input.patch_size"
            )
        return encoded

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the patches of images so many pixels high."""
        return rows.astype(np.int64) // self.patch_size * self.columns

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return pixels [N, H, W, C] less the mean, divided by the deviation."""
        mean, deviation = (np.array(of, np.float32) for of in (self.statistics.mean, self.statistics.deviation))
        return torch.from_numpy((np.stack(encoded) - mean) / deviation)

    def representation(self) -> RepresentationBuilder:
        return patches(self.patch_size, self.statistics.channels)

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        """Return "row 1, column 1", ... in reading order [T]."""
        places = np.ndindex(self.rows, self.columns)
        return [f"row {row + 1}, column {column + 1}" for row, column in places]

    def layout(self, encoded: NDArray[Any]) -> Layout:
        """Return the grid of patches over the image, a PNG of its own size: enlarge it without smoothing."""
        return Layout(self.labels(encoded), self.rows, self.columns, data_url(encoded))

    def describe(self) -> str:
        side = self.patch_size
        return f"{_size(self.statistics.shape)} images in {self.rows * self.columns} patches of {side} x {side}"

    def save(self, run: Path) -> None:
        write_atomically(run / STATISTICS, json.dumps(asdict(self.statistics)) + "\n")

    def _checked(self, item: Any, name: str) -> Pixels:
        pixels = as_pixels(item, name, self.statistics.channels)
        _require_size(pixels, self.statistics.shape, name, "every image of the run")
        return pixels


def as_pixels(item: Any, name: str, channels: int | None = None) -> Pixels:
    """Return an image as pixels [H, W, C] from 0 to 1.

    Args:
        item: an array [H, W] or [H, W, C] of uint8 (0 to 255) or float (0 to 1), or a file that holds one.
        name: an array in messages.
        channels: channels of PNG and JPEG files. None: those of the file itself.

    Raises:
        DataError: the item is no such array, or the file cannot be read.
    """
    if isinstance(item, ItemFile):
        item, name = _read_image(item, channels), str(item)
    if not isinstance(item, np.ndarray):
        raise DataError(f"{name} is of type {type(item).__name__}, not an image: give an array, or another input.kind")
    image = item[..., None] if item.ndim == 2 else item
    if image.ndim != 3 or image.shape[2] not in MODES or not image.size:
        raise DataError(
            f"{name} is an array of {_size(item.shape)}: an image has height x width, or height x width x channels (1 "
            "to 4)"
        )
    if image.dtype == np.uint8:
        return image.astype(np.float32) / np.float32(GREATEST_BYTE)
    if not np.issubdtype(image.dtype, np.floating):
        raise DataError(f"{name} has numbers of type {image.dtype}: give uint8 (0 to 255) or float (0 to 1)")
    if not (image.min() >= 0 and image.max() <= 1):  # false for NaN as well
        raise DataError(
            f"{name} has numbers from {image.min():g} to {image.max():g}: floats are from 0 (black) to 1 (white), so "
            "divide them by the largest that is possible"
        )
    return image.astype(np.float32)


def _require_size(pixels: Pixels, expected: tuple[int, ...], name: str, other: str) -> None:
    if pixels.shape != expected:
        raise DataError(f"{name} is {_size(pixels.shape)}, {other} is {_size(expected)}: give images of one size")


def _size(shape: Sequence[int]) -> str:
    """Height x width, and the channels if there are several."""
    return " x ".join(map(str, shape[:2] if len(shape) == 3 and shape[2] == 1 else shape))


def _alike(items: Iterable[Any]) -> Iterator[Pixels]:
    """Yield training images: files with as many channels as the first image."""
    channels: int | None = None
    for number, item in enumerate(items, 1):
        pixels = as_pixels(item, f"item {number}", channels)
        channels = channels or pixels.shape[2]
        yield pixels


def _read_image(file: ItemFile, channels: int | None) -> NDArray[Any]:
    """Return the array in a .npy file, or the 8-bit pixels of a PNG or JPEG file."""
    if file.suffix.lower() != ".npy":
        return _read_picture(file, channels)
    try:
        array: NDArray[Any] = np.load(io.BytesIO(read_item_file(file, FILES)), allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise unreadable(file, error, FILES) from error
    return array


def _read_picture(path: ItemFile, channels: int | None) -> NDArray[np.uint8]:
    pillow, operations = _pillow()
    try:
        with pillow.open(io.BytesIO(read_item_file(path, FILES)), formats=("PNG", "JPEG")) as opened:
            picture = operations.exif_transpose(opened)
            own = picture.mode if picture.mode in MODES.values() else "RGB"
            mode = own if channels is None else MODES[channels]
            if picture.mode.startswith(("I", "F")):
                raise DataError(f"{path} has more than 8 bits a channel: save it with 8, or as .npy from 0 to 1")
            if "A" not in mode and picture.convert("RGBA").getextrema()[3][0] < GREATEST_BYTE:
                raise DataError(f"{path} has transparent pixels, the run's images have none: save it without")
            return np.asarray(picture.convert(mode))
    except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError) as error:
        raise unreadable(path, error, FILES) from error


def data_url(pixels: Pixels) -> str:
    """Return pixels as the data URL of a PNG file."""
    return f"data:image/png;base64,{base64.b64encode(as_png(pixels)).decode()}"


def as_png(pixels: Pixels) -> bytes:
    """Return pixels as a PNG file of 8 bits a channel."""
    pillow, _ = _pillow()
    levels = np.rint(pixels * GREATEST_BYTE).astype(np.uint8)
    written = io.BytesIO()
    pillow.fromarray(levels[..., 0] if levels.shape[2] == 1 else levels).save(written, "PNG")
    return written.getvalue()


def _pillow() -> Any:
    """Return the modules Image and ImageOps of Pillow. Raises ConfigError if it is not installed."""
    try:
        from PIL import Image, ImageOps
    except ModuleNotFoundError as error:
        raise ConfigError("pictures need Pillow: pip install pillow") from error
    return Image, ImageOps
