"""Interface of modalities: everything the package knows about one kind of item.

A modality is named in a recipe (`input: {kind: text}`). It fits a codec to training data. The codec turns items into
arrays and arrays into inputs of the model's representation, names the elements of an item, and is saved in the run.

Shape legend: T elements of an item, N items.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regardant.config import Variants
from regardant.data.item_files import ItemFile
from regardant.errors import DataError
from regardant.models.representations import RepresentationBuilder
from regardant.pictures import Layout


class Codec:
    """Base of codecs, which turn items into arrays, arrays into inputs of a model, and name elements."""

    unit: ClassVar[str]
    """Name of an element: token, patch, node, frame, step."""

    item_name: ClassVar[str] = "an item"
    """Name of an item with its article, for messages."""

    shorter_by: ClassVar[str] = ""
    """Settings that make items shorter, as messages list them: ", or input.patch_size"."""

    equal_shapes: ClassVar[bool] = False
    """True if `collate` needs arrays of one shape."""

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return an array for each item. Raises DataError, which names the remedy, for an item that cannot be read."""
        raise NotImplementedError

    def parse(self, argument: str) -> Any:
        """Return the item of a command-line argument: a text, or the path of a file. Raises DataError."""
        raise NotImplementedError

    def read(self, arguments: Sequence[str]) -> list[NDArray[Any]]:
        """Return the encoded items of command-line arguments. Raises DataError."""
        return self.encode([self.parse(argument) for argument in arguments])

    def title(self, argument: str) -> str:
        """Return the title of an item on a page, given its command-line argument. By default the argument itself."""
        return argument

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str | None:
        """Return the command-line argument of an encoded item: its text, or the path of a file written to `folder`.

        name: name of the file without its suffix. The result is None if the encoding has lost a part of the item.
        """
        raise NotImplementedError

    def cut(self, encoded: NDArray[Any], length: int) -> NDArray[Any]:
        """Return the item, cut to its first `length` elements.

        By default items cannot be cut: a longer one raises DataError.
        """
        return self.whole(encoded, self.count(encoded), length)

    def whole(self, encoded: NDArray[Any], count: int, length: int, place: str = "") -> NDArray[Any]:
        """Return an item of `count` elements unchanged. Raises DataError if `count` is above `length`.

        place: part of the message that names the counted elements, if not all are counted.
        """
        if count > length:
            plural = f"{self.unit}es" if self.unit.endswith("ch") else f"{self.unit}s"
            raise DataError(
                f"{self.item_name} has {count:,} {plural}{place}, of which at most {length:,} are read: raise "
                f"model.max_length and training.batch_tokens{self.shorter_by}"
            )
        return encoded

    def count(self, encoded: NDArray[Any]) -> int:
        """Return the number of an item's elements."""
        return int(self.lengths(np.array([len(encoded)]))[0])

    def augmented(self, encoded: NDArray[Any], seed: Sequence[int]) -> NDArray[Any]:
        """Return a training item with the random augmentation of this seed. By default the item is unchanged."""
        return encoded

    def parts(self, argument: str, length: int) -> tuple[list[NDArray[Any]], list[str]]:
        """Return the encoded item of a command-line argument in parts of at most `length` elements, and notes for the
        user. By default there is one part, cut if it is longer. Raises DataError."""
        (whole,) = self.read([argument])
        longer = self.count(whole) > length
        notes = [f"longer than the model's {length} {self.unit}s: the rest was not read"] if longer else []
        return [self.cut(whole, length) if longer else whole], notes

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of elements of each item, given the number of rows of its array."""
        return rows.astype(np.int64)

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Any:
        """Return the batch of encoded items that `representation` reads."""
        raise NotImplementedError

    def by_input(self, encoded: NDArray[Any], names: Sequence[str]) -> "dict[str, tuple[Codec, NDArray[Any]]]":
        """Return the codec and array of each input of a model, for one item. A single input reads the whole item."""
        (name,) = names
        return {name: (self, encoded)}

    def representation(self) -> RepresentationBuilder:
        """Return the builder of the representation of these items."""
        raise NotImplementedError

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        """Return the name of every element, for pictures and tables."""
        raise NotImplementedError

    def layout(self, encoded: NDArray[Any]) -> Layout:
        """Return the layout of the item on a page: by default its elements' names in one row.

        Override if elements are on a grid or an item is a picture.
        """
        labels = self.labels(encoded)
        return Layout(labels, 1, len(labels))

    def units(self, argument: str, encoded: NDArray[Any]) -> list[tuple[str, int]]:
        """Return (word, number of its elements) for each word of an item, given its command-line argument.

        Empty: its elements form no words.
        """
        return []

    def describe(self) -> str:
        """Return a description in one line, such as a vocabulary and its size, or the size of an image."""
        raise NotImplementedError

    def save(self, run: Path) -> None:
        """Save the codec in a run folder."""
        raise NotImplementedError


class ModalityConfig(Variants):
    """Configuration of a kind of item. A subclass with a `kind` adds one."""

    default_kind: ClassVar[str] = "text"

    files: ClassVar[Sequence[str]] = ()
    """Files that the codec keeps in a run folder."""

    first_epochs: ClassVar[int] = 10
    """Epochs of a training whose budget is `auto`, within limits in minutes."""

    suffixes: ClassVar[Sequence[str]] = ()
    """Suffixes of files that hold one item each. Empty: an item is a text."""

    reads_whole: ClassVar[bool] = False
    """True if a model reads the longest training item whole, unless the recipe sets `model.max_length`."""

    def fit(self, items: Iterable[Any]) -> Codec:
        """Return a codec fitted to training items: a vocabulary learned, a mean measured."""
        raise NotImplementedError

    def load(self, run: Path) -> Codec:
        """Return the codec that is saved in a run folder. Raises DataError."""
        raise NotImplementedError

    def require_readable(self, file: ItemFile) -> None:
        """Read a file of one item as training does. Raises UnreadableFileError for a damaged one."""


class PartModalityConfig(ModalityConfig):
    """Base of modalities that can be a part of an item of several parts."""
