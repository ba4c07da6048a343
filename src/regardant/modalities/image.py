"""Images: an item is an array or a file, an element a square patch.

Shape legend: H height, W width, C channels, N images, T patches.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from torch import Tensor

from regardant.data.item_files import ItemFile
from regardant.errors import ConfigError, DataError
from regardant.modalities.augmentation import AugmentationName, augmented
from regardant.modalities.base import Codec, PartModalityConfig
from regardant.modalities.image_size import LEAST_PATCHES, MOST_PATCHES, Size, common_size, fitting_patch, resized
from regardant.modalities.pixels import (
    Pixels,
    as_pixels,
    as_png,
    data_url,
    format_size,
    moments,
    name_of,
    normalised,
    shape_of,
)
from regardant.modalities.statistics import save_statistics, saved_statistics
from regardant.models.representations import RepresentationBuilder, patches
from regardant.pictures import Layout

STATISTICS = "image.json"


@dataclass(frozen=True)
class Statistics:
    """Size of a run's images, and mean and standard deviation of each channel over the training images."""

    height: int
    width: int
    channels: int
    mean: Sequence[float]
    deviation: Sequence[float]
    patch_size: int | None = None
    """Side of a patch in pixels, if it was chosen automatically. None: the recipe sets it."""

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


class ImageModalityConfig(PartModalityConfig):
    """Images as patches. All training images have one size, or are resized to one."""

    kind: Literal["image"] = "image"

    files = (STATISTICS,)
    first_epochs = 150
    suffixes = (".png", ".jpg", ".jpeg", ".npy")

    patch_size: Annotated[int, Field(gt=0)] | Literal["auto"] = 16
    """Side of a patch in pixels; both sides of an image must be multiples of it. auto: the smallest side, from 2, that
    cuts an image into 9 to 64 patches."""

    resize: tuple[PositiveInt, PositiveInt] | Literal["auto"] | None = None
    """Height and width in pixels that every image is resized to, as [64, 64]. auto: the size of the training images, if
    they have one that patches fit; otherwise a square of up to 64 x 64. Empty: no image is resized."""

    augment: tuple[AugmentationName, ...] = ()
    """Augmentation of training images, in this order and drawn anew in each epoch, as [shift, rotate]: flip (left and
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
                f"input.patch_size: given {self.patch_size}; images of {format_size(statistics.shape)} allow {allowed}"
            )
        return self._codec(statistics)

    def load(self, run: Path) -> "ImageCodec":
        with saved_statistics(run / STATISTICS) as saved:
            statistics = Statistics(**saved)
            if self.patch_size == "auto" and statistics.patch_size is None:
                raise ValueError("it has no patch_size")
        return self._codec(statistics)

    def require_readable(self, file: ItemFile) -> None:
        as_pixels(file, name_of(file, 1))

    def _form_of(self, items: Sequence[Any]) -> tuple[Size | None, int | None]:
        """Return the size that images are resized to, and the channels that files are read with. None: those of the
        first image."""
        if self.resize != "auto":
            return self.resize, None
        shapes = [shape_of(item, name_of(item, number)) for number, item in enumerate(items, 1)]
        if not shapes:
            return None, None
        return common_size([(height, width) for height, width, _ in shapes]), max(shape[2] for shape in shapes)

    def _codec(self, statistics: Statistics) -> "ImageCodec":
        chosen = statistics.patch_size if self.patch_size == "auto" else self.patch_size
        assert chosen is not None
        return ImageCodec(statistics, chosen, resizes=self.resize is not None, changes=self.augment)


class ImageCodec(Codec):
    """Images to normalised pixels. Images of a data set have the run's size, a single image may have another."""

    unit = "patch"
    item_name = "an image"
    shorter_by = ", or input.patch_size"
    equal_shapes = True

    def __init__(
        self, statistics: Statistics, patch_size: int, *, resizes: bool, changes: Sequence[AugmentationName]
    ) -> None:
        self.statistics, self.patch_size, self.resizes, self.changes = statistics, patch_size, resizes, changes
        self.rows, self.columns = statistics.height // patch_size, statistics.width // patch_size

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return pixels [H, W, C] from 0 to 1. Raises DataError for an item that is no image of the run's size."""
        return [self._checked(item, name_of(item, number)) for number, item in enumerate(items, 1)]

    def parse(self, argument: str) -> Pixels:
        """Return the image in a PNG, JPEG or .npy file, of any size in whole patches. Raises DataError."""
        pixels = self._pixels(Path(argument), argument)
        side = self.patch_size
        if pixels.shape[0] % side or pixels.shape[1] % side:
            raise DataError(
                f"{argument} is {format_size(pixels.shape)}, which patches of {side} x {side} do not fill: give an "
                "image whose sides are multiples of it, or train with input.resize=auto"
            )
        return pixels

    def read(self, arguments: Sequence[str]) -> list[NDArray[Any]]:
        return [self.parse(argument) for argument in arguments]

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str:
        """Write the image as a PNG of 8 bits a channel. Return its path."""
        path = folder / f"{name}.png"
        path.write_bytes(as_png(encoded))
        return str(path)

    def count(self, encoded: NDArray[Any]) -> int:
        """Return the number of patches of an image of any size."""
        return math.prod(self._grid(encoded))

    def augmented(self, encoded: NDArray[Any], seed: Sequence[int]) -> NDArray[Any]:
        return augmented(encoded, self.changes, seed) if self.changes else encoded

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of patches of each image, given its height in pixels. The width is that of the run."""
        return rows.astype(np.int64) // self.patch_size * self.columns

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return pixels [N, H, W, C] less the mean, divided by the standard deviation."""
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
        side, size = self.patch_size, format_size(self.statistics.shape)
        images = f"images resized to {size}" if self.resizes else f"{size} images"
        return f"{images} in {self.rows * self.columns} patches of {side} x {side}"

    def save(self, run: Path) -> None:
        save_statistics(run / STATISTICS, self.statistics)

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


def _chosen_patch(shape: Sequence[int]) -> int:
    """Return the patch size for images of a size. Raises ConfigError if none fits."""
    height, width, _ = shape
    side = fitting_patch((height, width))
    if side is None:
        raise ConfigError(
            f"input.patch_size: auto finds no size that cuts images of {format_size(shape)} into {LEAST_PATCHES} to "
            f"{MOST_PATCHES} patches: set input.resize=auto, or a patch size"
        )
    return side


def _require_size(pixels: Pixels, expected: tuple[int, ...], name: str, other: str) -> None:
    if pixels.shape != expected:
        raise DataError(
            f"{name} is {format_size(pixels.shape)}, {other} is {format_size(expected)}: give images of one size, or "
            "set input.resize=auto"
        )


def _alike(items: Iterable[Any], size: Size | None, channels: int | None) -> Iterator[tuple[str, Pixels]]:
    """Yield training images with their names, resized if `size` is given. Files are read with `channels` channels, by
    default with those of the first image."""
    for number, item in enumerate(items, 1):
        name = name_of(item, number)
        pixels = as_pixels(item, name, channels)
        channels = channels or pixels.shape[2]
        yield name, pixels if size is None else resized(pixels, size)
