"""Items of several parts: an item is a mapping, such as an image and a question about it, each part of its own kind.

An encoded item is an array [T, W] of bytes with one row for each element, which holds the number of rows of each part
and then the arrays of all parts, end to end. Batches thus know the length of an item without reading it.

Shape legend: T elements of all parts, W bytes of a row, N items.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from regardant.data.text_files import require_whole_characters
from regardant.errors import ConfigError, DataError, ItemError, RunError
from regardant.files import write_atomically
from regardant.modalities.base import Codec, ModalityConfig, PartModalityConfig
from regardant.models.representations import Blocks, JoinedBuilder
from regardant.pictures import Layout

PARTS = "parts"
"""Folder of a run with the files of each part's codec."""

ROWS = "parts.json"
"""File of a run with the type of the rows of each part's arrays."""

SHOWN = 60
"""Characters of an item in a message."""


@dataclass(frozen=True)
class RowType:
    """Type and shape of the rows of a part's arrays."""

    dtype: str
    shape: Sequence[int]

    @classmethod
    def of(cls, encoded: NDArray[Any]) -> Self:
        """Return the type of the rows of an array."""
        return cls(encoded.dtype.str, list(encoded.shape[1:]))

    @property
    def size(self) -> int:
        """Bytes of a row."""
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=np.int64))


class JoinedModalityConfig(ModalityConfig):
    """Items of several parts, whose elements form one sequence. Parts that are not named are ignored."""

    kind: Literal["joined"] = "joined"

    parts: Mapping[str, PartModalityConfig] = Field(min_length=1)
    """The kind of each part by its name, in the order of their elements, as {question: {kind: text}, image: {kind:
    image}}. A page draws the last part as a picture."""

    @field_validator("parts")
    @classmethod
    def names_are_words(cls, parts: Mapping[str, PartModalityConfig]) -> Mapping[str, PartModalityConfig]:
        """Refuse a name that cannot name a folder and a part of a model."""
        if wrong := [name for name in parts if not (name.isidentifier() and name.isascii())]:
            raise ValueError(f"given {wrong[0]!r}; a part's name has letters, digits and _ alone, as in first_image")
        return parts

    @property
    def files(self) -> Sequence[str]:  # type: ignore[override]  # a constant in other modalities
        return [ROWS, *(f"{PARTS}/{name}/{file}" for name, part in self.parts.items() for file in part.files)]

    def fit(self, items: Iterable[Any]) -> "JoinedCodec":
        given = list(items)
        codecs, rows = {}, {}
        for name, part in self.parts.items():
            own = [part_of(item, name, number) for number, item in enumerate(given, 1)]
            with named(name):
                codecs[name] = part.fit(own)
                rows[name] = RowType.of(codecs[name].encode(own[:1])[0])
        return JoinedCodec(codecs, rows)

    def load(self, run: Path) -> "JoinedCodec":
        try:
            kept = json.loads((run / ROWS).read_text(encoding="utf-8"))
            rows = {name: RowType(**kept[name]) for name in self.parts}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise RunError(f"{run / ROWS} is damaged ({error}): restore it or train again") from error
        return JoinedCodec({name: part.load(run / PARTS / name) for name, part in self.parts.items()}, rows)


class JoinedCodec(Codec):
    """Items of several parts to arrays of bytes, and the codec of each part."""

    unit = "element"
    shorter_by = ", or give shorter items"

    def __init__(self, codecs: Mapping[str, Codec], rows: Mapping[str, RowType]) -> None:
        self.codecs, self.rows = codecs, rows

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return the bytes of items [T, W]. Raises DataError for an item that lacks a part, or a part that is wrong."""
        columns = []
        for name, codec in self.codecs.items():
            own = [part_of(item, name, number) for number, item in enumerate(items, 1)]
            with named(name):
                columns.append(codec.encode(own))
        return self._packed(list(zip(*columns, strict=True)))

    def parse(self, argument: str) -> dict[str, Any]:
        """Return the item of a JSON object with a text or the path of a file for each part. Raises DataError."""
        item = {}
        for name, given in self._given(argument).items():
            with named(name):
                item[name] = self.codecs[name].parse(given)
        return item

    def title(self, argument: str) -> str:
        return "; ".join(f"{name}: {self.codecs[name].title(one)}" for name, one in self._given(argument).items())

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str | None:
        given = {
            part: codec.argument(own, folder, f"{name}-{part}")
            for (part, codec), own in zip(self.codecs.items(), self.unpacked(encoded), strict=True)
        }
        return None if None in given.values() else json.dumps(given, ensure_ascii=False)

    def augmented(self, encoded: NDArray[Any], seed: Sequence[int]) -> NDArray[Any]:
        parts = self.unpacked(encoded)
        numbered = enumerate(zip(self.codecs.values(), parts, strict=True))
        changed = [codec.augmented(own, (*seed, number)) for number, (codec, own) in numbered]
        same = all(new is own for new, own in zip(changed, parts, strict=True))
        return encoded if same else self._packed([changed])[0]

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Blocks:
        """Return the block of each part of a batch."""
        columns = list(zip(*(self.unpacked(one) for one in encoded), strict=True))
        parts = list(zip(self.codecs.values(), columns, strict=True))
        lengths = zip(*([codec.count(one) for one in own] for codec, own in parts), strict=True)
        return Blocks([codec.collate(own) for codec, own in parts], list(lengths))

    def by_input(self, encoded: NDArray[Any], names: Sequence[str]) -> dict[str, tuple[Codec, NDArray[Any]]]:
        """Return the whole item for a model of one input, or the part of each input for a model of several."""
        if len(names) == 1:
            return super().by_input(encoded, names)
        parts = dict(zip(self.codecs, self.unpacked(encoded), strict=True))
        return {name: (self.codecs[name], parts[name]) for name in names}

    def representation(self) -> JoinedBuilder:
        return JoinedBuilder({name: codec.representation() for name, codec in self.codecs.items()})

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        """Return the names of the elements of all parts."""
        both = zip(self.codecs.values(), self.unpacked(encoded), strict=True)
        return [label for codec, own in both for label in codec.labels(own)]

    def layout(self, encoded: NDArray[Any]) -> Layout:
        """Return the layout of the last part if it is a picture, else one row of all elements."""
        last = list(self.codecs.values())[-1].layout(self.unpacked(encoded)[-1])
        return last if last.is_grid else super().layout(encoded)

    def units(self, argument: str, encoded: NDArray[Any]) -> list[tuple[str, int]]:
        """Return the words of all parts. Empty if the elements of a part form no words."""
        given = zip(self._given(argument).items(), self.unpacked(encoded), strict=True)
        found = [self.codecs[name].units(text, own) for (name, text), own in given]
        return [unit for units in found for unit in units] if all(found) else []

    def describe(self) -> str:
        return "; ".join(f"{name}: {codec.describe()}" for name, codec in self.codecs.items())

    def save(self, run: Path) -> None:
        for name, codec in self.codecs.items():
            folder = run / PARTS / name
            folder.mkdir(parents=True, exist_ok=True)
            codec.save(folder)
        kept = {name: {"dtype": rows.dtype, "shape": rows.shape} for name, rows in self.rows.items()}
        write_atomically(run / ROWS, json.dumps(kept) + "\n")

    def unpacked(self, encoded: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the array of each part of an encoded item."""
        content = encoded.tobytes()
        counts = np.frombuffer(content, np.int64, len(self.codecs)).tolist()
        start, parts = 8 * len(self.codecs), []
        for count, rows in zip(counts, self.rows.values(), strict=True):
            end = start + count * rows.size
            parts.append(np.frombuffer(content[start:end], rows.dtype).reshape(count, *rows.shape))
            start = end
        return parts

    def _packed(self, items: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[np.uint8]]:
        """Return items as arrays [T, W]. W is the largest number of bytes per element among the items."""
        counts = np.array([[len(part) for part in item] for item in items], np.int64).reshape(-1, len(self.codecs))
        of_parts = [codec.lengths(counts[:, column]) for column, codec in enumerate(self.codecs.values())]
        lengths = np.stack(of_parts).sum(0)
        sizes = counts @ np.array([rows.size for rows in self.rows.values()]) + 8 * len(self.codecs)
        width = int((-(-sizes // lengths)).max(initial=1))
        packed = []
        for item, count, length in zip(items, counts, lengths.tolist(), strict=True):
            content = b"".join([count.tobytes(), *(np.ascontiguousarray(part).tobytes() for part in item)])
            packed.append(np.frombuffer(content.ljust(length * width, b"\0"), np.uint8).reshape(length, width))
        return packed

    def _given(self, argument: str) -> dict[str, str]:
        """Return the argument of each part, given the command-line argument of an item. Raises DataError."""
        try:
            given = json.loads(argument)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict) or not all(isinstance(given.get(name), str) for name in self.codecs):
            example = json.dumps({name: "..." for name in self.codecs})
            raise DataError(
                f"{argument[:SHOWN]!r} is no item of the parts {', '.join(self.codecs)}: give a JSON object with a "
                f"text or the path of a file for each, as {example}"
            )
        for name in self.codecs:
            require_whole_characters(f"part {name}", given[name])
        return {name: given[name] for name in self.codecs}


def part_of(item: Any, name: str, number: int) -> Any:
    """Return a part of an item. Raises DataError if the item has none of that name."""
    if not isinstance(item, Mapping):
        raise DataError(f"item {number} is of type {type(item).__name__}, not of several parts: set another input.kind")
    if name not in item:
        raise DataError(f"item {number} has no part {name!r} (there are: {', '.join(item)}): correct input.parts")
    return item[name]


@contextmanager
def named(part: str) -> Iterator[None]:
    """Add the name of a part to an error for the user."""
    try:
        yield
    except ItemError as error:
        raise ItemError(error.number, f"(part {part}) {error.problem}") from error
    except (ConfigError, DataError) as error:
        raise error.within(f"part {part}") from error
