"""Images: an item is an array or a file, an element a square patch.

Shape legend: H height, W width, C channels, N images, T patches.
"""

import base64
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from torch import Tensor

from regardant.data.item_files import ItemFile, read_item_file, unreadable
from regardant.errors import ConfigError, DataError, RunError
from regardant.modalities.augmentation import Change, augmented
from regardant.modalities.base import Codec, ModalityConfig
from regardant.modalities.image_size import LEAST_PATCHES, MOST_PATCHES, Size, common_size, fitting_patch, resized
from regardant.models.representations import RepresentationBuilder, patches
from regardant.pictures import Layout
from regardant.training.checkpoints import write_atomically

STATISTICS = "image.json"

Pixels = NDArray[np.float32]
"""[H, W, C] from 0 (black) to 1 (white)."""

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
"""Pillow's names of 8-bit images, by number of channels."""

GREATEST_BYTE = 255

ORIENTATION, LYING = 274, 5
"""The field of a photo's orientation, and the least of its values that swap height and width."""

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
    patch_size: int | None = None
    """Side of a patch, where it was chosen. None: the recipe names it."""

    @classmethod
    def measured(cls, images: Iterable[tuple[str, Pixels]]) -> "Statistics":
        """Return the statistics of named images of one size. Raises DataError if sizes differ or there is no image."""
        shape: tuple[int, ...] = ()
        count, total, squares = 0, np.zeros(1), np.zeros(1)
        for name, pixels in images:
            shape, count = shape or pixels.shape, count + 1
            _require_size(pixels, shape, name, "the first item")
            wide = pixels.astype(np.float64)
            total, squares = total + wide.mean((0, 1)), squares + (wide**2).mean((0, 1))
        if not count:
            raise DataError("there are no training images: give some")
        height, width, channels = shape
        return cls(height, width, channels, *moments(count, total, squares))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        return self.height, self.width, self.channels


class ImageModalityConfig(ModalityConfig):
    """Images as patches. All training images have one size, or are given one."""

    kind: Literal["image"] = "image"

    files = (STATISTICS,)
    first_epochs = 50
    suffixes = (".png", ".jpg", ".jpeg", ".npy")

    patch_size: Annotated[int, Field(gt=0)] | Literal["auto"] = 16
    """Side of a patch in pixels; both sides of an image must be multiples of it. auto: the smallest, from 2, of which
    an image has 9 to 64."""

    resize: tuple[PositiveInt, PositiveInt] | Literal["auto"] | None = None
    """Height and width in pixels that every image is resized to, as [64, 64]. auto: the size of the training images, if
    they have one; otherwise a square of up to 64 x 64. Empty: no image is resized."""

    augment: tuple[Change, ...] = ()
    """Random changes of training images, in this order and anew in each epoch, as [shift, rotate]: flip (left and
    right, half of the images), shift (by up to 1/8), rotate (by up to 15 degrees), crop (to 60 % of the area or more),
    brightness (with contrast, by up to 20 %)."""

    def fit(self, items: Iterable[Any]) -> "ImageCodec":
        """Return a codec with the statistics of training images. Raises DataError, and ConfigError for patches that do
        not fit."""
        given = list(items)
        size, channels = self._form_of(given)
        statistics = Statistics.measured(_alike(given, size, channels))
        if self.patch_size == "auto":
            statistics = replace(statistics, patch_size=_chosen_patch(statistics.shape))
        elif statistics.height % self.patch_size or statistics.width % self.patch_size:
            both = np.gcd(statistics.height, statistics.width)
            allowed = ", ".join(str(side) for side in range(1, both + 1) if both % side == 0)
            raise ConfigError(
                f"input.patch_size: given {self.patch_size}; images of {_size(statistics.shape)} allow {allowed}"
            )
        return self._codec(statistics)

    def load(self, run: Path) -> "ImageCodec":
        try:
            statistics = Statistics(**json.loads((run / STATISTICS).read_text(encoding="utf-8")))
            if self.patch_size == "auto" and statistics.patch_size is None:
                raise ValueError("it has no patch_size")
        except (OSError, ValueError, TypeError) as error:
            raise RunError(f"{run / STATISTICS} is damaged ({error}): restore it or train again") from error
        return self._codec(statistics)

    def _form_of(self, items: Sequence[Any]) -> tuple[Size | None, int | None]:
        """Return the size that images are given, and the channels that files are read with. None: those of the first
        image."""
        if self.resize != "auto":
            return self.resize, None
        shapes = [shape_of(item, _name_of(item, number)) for number, item in enumerate(items, 1)]
        if not shapes:
            return None, None
        return common_size([(height, width) for height, width, _ in shapes]), max(shape[2] for shape in shapes)

    def _codec(self, statistics: Statistics) -> "ImageCodec":
        chosen = statistics.patch_size if self.patch_size == "auto" else self.patch_size
        assert chosen is not None
        return ImageCodec(statistics, chosen, resizes=self.resize is not None, changes=self.augment)


class ImageCodec(Codec):
    """Images to normalised pixels. Those of a data set have the run's size, a single one may have another."""

    unit = "patch"
    equal_shapes = True

    def __init__(self, statistics: Statistics, patch_size: int, *, resizes: bool, changes: Sequence[Change]) -> None:
        self.statistics, self.patch_size, self.resizes, self.changes = statistics, patch_size, resizes, changes
        self.rows, self.columns = statistics.height // patch_size, statistics.width // patch_size

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return pixels [H, W, C] from 0 to 1. Raises DataError for an item that is no image of the run's size."""
        return [self._checked(item, _name_of(item, number)) for number, item in enumerate(items, 1)]

    def parse(self, argument: str) -> Pixels:
        """Return the image in a PNG, JPEG or .npy file, of any size in whole patches. Raises DataError."""
        pixels = self._pixels(Path(argument), argument)
        side = self.patch_size
        if pixels.shape[0] % side or pixels.shape[1] % side:
            raise DataError(
                f"{argument} is {_size(pixels.shape)}, which patches of {side} x {side} do not fill: give an image "
                "whose sides are multiples of it, or train with input.resize=auto"
            )
        return pixels

    def read(self, arguments: Sequence[str]) -> list[NDArray[Any]]:
        return [self.parse(argument) for argument in arguments]

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str:
        """Write the image as a PNG of 8 bits a channel. Return its path."""
        path = folder / f"{name}.png"
        path.write_bytes(as_png(encoded))
        return str(path)

    def cut(self, encoded: NDArray[Any], length: int) -> NDArray[Any]:
        """Return the image whole. Raises DataError if it has more than `length` patches."""
        if (count := math.prod(self._grid(encoded))) > length:
            raise DataError(
                f"an image has {count} patches, of which at most {length} are read: raise model.max_length and "
                "training.batch_tokens, or input.patch_size"
            )
        return encoded

    def augmented(self, encoded: NDArray[Any], seed: Sequence[int]) -> NDArray[Any]:
        return augmented(encoded, self.changes, seed) if self.changes else encoded

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the patches of images so many pixels high, as wide as those of the run."""
        return rows.astype(np.int64) // self.patch_size * self.columns

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return pixels [N, H, W, C] less the mean, divided by the deviation."""
        return normalised(encoded, self.statistics.mean, self.statistics.deviation)

    def representation(self) -> RepresentationBuilder:
        return patches(self.patch_size, self.statistics.channels, (self.rows, self.columns))

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        """Return "row 1, column 1", ... in reading order [T]."""
        places = np.ndindex(*self._grid(encoded))
        return [f"row {row + 1}, column {column + 1}" for row, column in places]

    def layout(self, encoded: NDArray[Any]) -> Layout:
        """Return the grid of patches over the image, a PNG of its own size: enlarge it without smoothing."""
        return Layout(self.labels(encoded), *self._grid(encoded), data_url(encoded))

    def describe(self) -> str:
        side, size = self.patch_size, _size(self.statistics.shape)
        images = f"images resized to {size}" if self.resizes else f"{size} images"
        return f"{images} in {self.rows * self.columns} patches of {side} x {side}"

    def save(self, run: Path) -> None:
        write_atomically(run / STATISTICS, json.dumps(asdict(self.statistics)) + "\n")

    def _checked(self, item: Any, name: str) -> Pixels:
        pixels = self._pixels(item, name)
        _require_size(pixels, self.statistics.shape, name, "every image of the run")
        return pixels

    def _pixels(self, item: Any, name: str) -> Pixels:
        pixels = as_pixels(item, name, self.statistics.channels)
        return resized(pixels, self.statistics.shape[:2]) if self.resizes else pixels

    def _grid(self, encoded: NDArray[Any]) -> tuple[int, int]:
        """Return the rows and columns of an image's patches."""
        return encoded.shape[0] // self.patch_size, encoded.shape[1] // self.patch_size


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


def moments(
    count: int, total: NDArray[np.float64], squares: NDArray[np.float64]
) -> tuple[Sequence[float], Sequence[float]]:
    """Return mean and deviation of each channel from the sums of so many items' means and mean squares."""
    mean = total / count
    deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
    deviation[deviation < 1e-6] = 1.0  # of a channel that is the same everywhere
    return mean.tolist(), deviation.tolist()


def normalised(encoded: Sequence[NDArray[Any]], mean: Sequence[float], deviation: Sequence[float]) -> Tensor:
    """Return a batch of pixels [N, ..., C] less the mean of each channel, divided by its deviation."""
    return torch.from_numpy((np.stack(encoded) - np.array(mean, np.float32)) / np.array(deviation, np.float32))


def shape_of(item: Any, name: str) -> tuple[int, int, int]:
    """Return height, width and channels of an image, reading no more of a PNG or JPEG file than its head. Raises
    DataError as `as_pixels` does."""
    if not isinstance(item, ItemFile) or item.suffix.lower() == ".npy":
        height, width, channels = as_pixels(item, name).shape
        return height, width, channels
    with _opened(item) as picture:
        width, height = picture.size
        channels = next((number for number, mode in MODES.items() if mode == picture.mode), 3)
        turned = picture.getexif().get(ORIENTATION, 1) >= LYING
        return (width, height, channels) if turned else (height, width, channels)


def _chosen_patch(shape: Sequence[int]) -> int:
    """Return the patch size for images of a size. Raises ConfigError if none fits."""
    height, width, _ = shape
    side = fitting_patch((height, width))
    if side is None:
        raise ConfigError(
            f"input.patch_size: auto finds no patches of which images of {_size(shape)} have {LEAST_PATCHES} to "
            f"{MOST_PATCHES}: set input.resize=auto, or a patch size"
        )
    return side


def _require_size(pixels: Pixels, expected: tuple[int, ...], name: str, other: str) -> None:
    if pixels.shape != expected:
        raise DataError(
            f"{name} is {_size(pixels.shape)}, {other} is {_size(expected)}: give images of one size, or set "
            "input.resize=auto"
        )


def _size(shape: Sequence[int]) -> str:
    """Height x width, and the channels if there are several."""
    return " x ".join(map(str, shape[:2] if len(shape) == 3 and shape[2] == 1 else shape))


def _alike(items: Iterable[Any], size: Size | None, channels: int | None) -> Iterator[tuple[str, Pixels]]:
    """Yield training images with their names, of the size if one is given: files with so many channels, by default with
    those of the first image."""
    for number, item in enumerate(items, 1):
        name = _name_of(item, number)
        pixels = as_pixels(item, name, channels)
        channels = channels or pixels.shape[2]
        yield name, pixels if size is None else resized(pixels, size)


def _name_of(item: Any, number: int) -> str:
    return str(item) if isinstance(item, ItemFile) else f"item {number}"


def _read_image(file: ItemFile, channels: int | None) -> NDArray[Any]:
    """Return the array in a .npy file, or the 8-bit pixels of a PNG or JPEG file."""
    return read_array(file, FILES) if file.suffix.lower() == ".npy" else _read_picture(file, channels)


def read_array(file: ItemFile, allowed: str) -> NDArray[Any]:
    """Return the array in a .npy file. Raises DataError, which says what is allowed."""
    try:
        array: NDArray[Any] = np.load(io.BytesIO(read_item_file(file, allowed)), allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise unreadable(file, error, allowed) from error
    return array


def _read_picture(path: ItemFile, channels: int | None) -> NDArray[np.uint8]:
    _, operations = _pillow()
    with _opened(path) as opened:
        picture = operations.exif_transpose(opened)
        own = picture.mode if picture.mode in MODES.values() else "RGB"
        mode = own if channels is None else MODES[channels]
        if picture.mode.startswith(("I", "F")):
            raise DataError(f"{path} has more than 8 bits a channel: save it with 8, or as .npy from 0 to 1")
        if "A" not in mode and picture.convert("RGBA").getextrema()[3][0] < GREATEST_BYTE:
            raise DataError(f"{path} has transparent pixels, the run's images have none: save it without")
        return np.asarray(picture.convert(mode))


@contextmanager
def _opened(path: ItemFile) -> Iterator[Any]:
    """Open a PNG or JPEG file with Pillow. Raises DataError for one that cannot be read."""
    pillow, _ = _pillow()
    try:
        with pillow.open(io.BytesIO(read_item_file(path, FILES)), formats=("PNG", "JPEG")) as opened:
            yield opened
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
