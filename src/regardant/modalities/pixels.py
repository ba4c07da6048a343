"""Pixels of images: reading of arrays and files, normalisation, and writing of images.

Shape legend: H height, W width, C channels, N images.
"""

import base64
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regardant.data.item_files import ItemFile, read_item_file, shown_name, unreadable_file
from regardant.errors import ConfigError, DataError

Pixels = NDArray[np.float32]
"""[H, W, C] from 0 (black) to 1 (white)."""

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
"""Pillow's names of 8-bit images, by number of channels."""

GREATEST_BYTE = 255

ORIENTATION, LYING = 274, (5, 6, 7, 8)
"""EXIF tag of a photo's orientation, and its values that swap height and width."""

FILES = "the path of a PNG, JPEG or .npy file"
"""Files that can be read, for messages."""


def as_pixels(item: Any, name: str, channels: int | None = None) -> Pixels:
    """Return an image as pixels [H, W, C] from 0 to 1.

    Args:
        item: an array [H, W] or [H, W, C] of uint8 (0 to 255) or float (0 to 1), or a file that holds one.
        name: name of an array in messages.
        channels: channels of PNG and JPEG files. None: those of the file itself.

    Raises:
        DataError: the item is no such array, or the file cannot be read.
    """
    if isinstance(item, ItemFile):
        item, name = _read_image(item, channels), shown_name(item)
    if not isinstance(item, np.ndarray):
        raise DataError(f"{name} is of type {type(item).__name__}, not an image: give an array, or another input.kind")
    image = item[..., None] if item.ndim == 2 else item
    if image.ndim != 3 or image.shape[2] not in MODES or not image.size:
        raise DataError(
            f"{name} is an array of {format_size(item.shape)}: an image has height x width, or height x width "
            "x channels (1 to 4)"
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


def moments(
    count: int, total: NDArray[np.float64], squares: NDArray[np.float64]
) -> tuple[Sequence[float], Sequence[float]]:
    """Return mean and standard deviation of each channel, from sums of the means and mean squares of `count` items."""
    mean = total / count
    deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
    deviation[deviation < 1e-6] = 1.0  # of a constant channel
    return mean.tolist(), deviation.tolist()


def normalised(encoded: Sequence[NDArray[Any]], mean: Sequence[float], deviation: Sequence[float]) -> Tensor:
    """Return a batch of pixels [N, ..., C] less the mean of each channel, divided by its standard deviation."""
    return torch.from_numpy((np.stack(encoded) - np.array(mean, np.float32)) / np.array(deviation, np.float32))


def shape_of(item: Any, name: str) -> tuple[int, int, int]:
    """Return height, width and channels of an image, reading only the header of a PNG or JPEG file. Raises DataError as
    `as_pixels` does."""
    if not isinstance(item, ItemFile) or item.suffix.lower() == ".npy":
        height, width, channels = as_pixels(item, name).shape
        return height, width, channels
    with _opened(item) as picture:
        width, height = picture.size
        channels = next((number for number, mode in MODES.items() if mode == picture.mode), 3)
        turned = picture.getexif().get(ORIENTATION) in LYING
        return (width, height, channels) if turned else (height, width, channels)


def format_size(shape: Sequence[int]) -> str:
    """Return the sizes of an array joined by x: height, width, and the channels if there are several."""
    return " x ".join(map(str, shape[:2] if len(shape) == 3 and shape[2] == 1 else shape)) or "one number"


def name_of(item: Any, number: int) -> str:
    """Return the name of an item in messages: the path of a file, or its number."""
    return shown_name(item) if isinstance(item, ItemFile) else f"item {number}"


def _read_image(file: ItemFile, channels: int | None) -> NDArray[Any]:
    """Return the array in a .npy file, or the 8-bit pixels of a PNG or JPEG file."""
    return read_array(file, FILES) if file.suffix.lower() == ".npy" else _read_picture(file, channels)


def read_array(file: ItemFile, allowed: str) -> NDArray[Any]:
    """Return the array in a .npy file. Raises DataError, with `allowed` as the description of readable files."""
    try:
        array: NDArray[Any] = np.load(io.BytesIO(read_item_file(file, allowed)), allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise unreadable_file(file, error, allowed) from error
    return array


def _read_picture(path: ItemFile, channels: int | None) -> NDArray[np.uint8]:
    _, operations = _pillow()
    with _opened(path) as opened:
        picture = operations.exif_transpose(opened)
        own = picture.mode if picture.mode in MODES.values() else "RGB"
        mode = own if channels is None else MODES[channels]
        if picture.mode.startswith(("I", "F")):
            raise DataError(
                f"{shown_name(path)} has more than 8 bits a channel: save it with 8, or as .npy from 0 to 1"
            )
        if "A" not in mode and picture.convert("RGBA").getextrema()[3][0] < GREATEST_BYTE:
            raise DataError(f"{shown_name(path)} has transparent pixels, the run's images have none: save it without")
        return np.asarray(picture.convert(mode))


@contextmanager
def _opened(path: ItemFile) -> Iterator[Any]:
    """Open a PNG or JPEG file with Pillow. Raises DataError for one that cannot be read."""
    pillow, _ = _pillow()
    try:
        with pillow.open(io.BytesIO(read_item_file(path, FILES)), formats=("PNG", "JPEG")) as opened:
            yield opened
    except (DataError, MemoryError):
        raise
    except Exception as error:  # Pillow's readers of EXIF data raise struct.error, TypeError and others
        raise unreadable_file(path, error, FILES) from error


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
