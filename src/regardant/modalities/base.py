"""The promise of a modality: everything the package knows about one kind of item.

A modality is named in a recipe (`input: {kind: text}`). From training data it fits a codec, which turns items into
arrays and arrays into what the model's representation reads, names the elements of an item, and is kept in the run.

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
    """Items to arrays, to a model's inputs, and to names for people."""

    unit: ClassVar[str]
    """The name of an element: token, patch, node, frame, step."""

    item_name: ClassVar[str] = "an item"
    """The name of an item with its article, for messages."""

    shorter_by: ClassVar[str] = ""
    """Settings that make items shorter, as messages list them: ", or input.patch_size"."""

    equal_shapes: ClassVar[bool] = False
    """Whether `collate` needs arrays of one shape."""

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return an array for each item. Raises DataError for an item that cannot be read, with the cure."""
        raise NotImplementedError

    def parse(self, argument: str) -> Any:
        """Return the item that a command line gives: a text, or the path of a file. Raises DataError."""
        raise NotImplementedError

    def read(self, arguments: Sequence[str]) -> list[NDArray[Any]]:
        """Return the items that a command line gives, encoded. Raises DataError."""
        return self.encode([self.parse(argument) for argument in arguments])

    def title(self, argument: str) -> str:
        """Return what a page calls an item that a command line gives. By default just that."""
        return argument

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str | None:
        """Return an item as a command line gives it: its text, or the path of a file written to `folder`.

        `name` is the name of the file without its suffix. None: encoding has lost a part of the item.
        """
        raise NotImplementedError

    def cut(self, encoded: NDArray[Any], length: int) -> NDArray[Any]:
        """Return the item with its first `length` elements at most.

        By default an item cannot be cut. Raises DataError for one of more elements.
        """
        return self.whole(encoded, self.count(encoded), length)

    def whole(self, encoded: NDArray[Any], count: int, length: int, place: str = "") -> NDArray[Any]:
        """Return an item of so many elements. Raises DataError if they are more than `length`.

        `place` says which elements of the item are counted, if not all.
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
        """Return a training item with the random changes of this seed. By default none."""
        return encoded

    def parts(self, argument: str, length: int) -> tuple[list[NDArray[Any]], list[str]]:
        """Return the item that a command line gives, encoded, in as many parts as a model of `length` elements reads it
        in, and notes for the user. By default one part, cut if it is longer. Raises DataError."""
        (whole,) = self.read([argument])
        longer = self.count(whole) > length
        notes = [f"longer than the model's {length} {self.unit}s: the rest was not read"] if longer else []
        return [self.cut(whole, length) if longer else whole], notes

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the elements of items whose arrays have so many rows."""
        return rows.astype(np.int64)

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Any:
        """Return the inputs of a batch: what `representation` reads."""
        raise NotImplementedError

    def by_input(self, encoded: NDArray[Any], names: Sequence[str]) -> "dict[str, tuple[Codec, NDArray[Any]]]":
        """Return what each input of a model reads of an item: a codec and an array. One input reads the whole item."""
        (name,) = names
        return {name: (self, encoded)}

    def representation(self) -> RepresentationBuilder:
        """Return the builder of the representation of these items."""
        raise NotImplementedError

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        """Return the name of every element, for pictures and tables."""
        raise NotImplementedError

    def layout(self, encoded: NDArray[Any]) -> Layout:
        """Return how a page draws the item: by default its elements' names in one row.

        Override it where elements stand on a grid or an item is a picture.
        """
        labels = self.labels(encoded)
        return Layout(labels, 1, len(labels))

    def units(self, argument: str, encoded: NDArray[Any]) -> list[tuple[str, int]]:
        """Return (word, number of its elements) for the elements of an item as a command line gives it.

        Empty: its elements make no words.
        """
        return []

    def describe(self) -> str:
        """Return one line for people: a vocabulary and its size, or the size of an image."""
        raise NotImplementedError

    def save(self, run: Path) -> None:
        """Keep it in a run folder."""
        raise NotImplementedError


class ModalityConfig(Variants):
    """Configuration of a kind of item. A subclass with a `kind` adds one."""

    default_kind: ClassVar[str] = "text"

    files: ClassVar[Sequence[str]] = ()
    """Files that the codec keeps in a run folder."""

    first_epochs: ClassVar[int] = 10
    """Passes over the items of a training whose budget is chosen, within bounds in minutes."""

    suffixes: ClassVar[Sequence[str]] = ()
    """Suffixes of files that hold one item each. Empty: an item is a text."""

    reads_whole: ClassVar[bool] = False
    """Whether a model whose recipe leaves `model.max_length` out reads the longest training item whole."""

    def fit(self, items: Iterable[Any]) -> Codec:
        """Return a codec fitted to training items: a vocabulary learned, a mean measured."""
        raise NotImplementedError

    def load(self, run: Path) -> Codec:
        """Return the codec that a run folder keeps. Raises DataError."""
        raise NotImplementedError

    def require_readable(self, file: ItemFile) -> None:
        """Read a file of one item as training does. Raises UnreadableFileError for a damaged one."""


class PartModalityConfig(ModalityConfig):
    """Base of kinds of items that can be a part of an item of several parts."""
