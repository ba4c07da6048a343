"""A text as one stream of tokens: reading, splitting and storage.

A text is tokenised once, into memory-mapped files, so that it may be larger than the machine's memory.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from regardant.config import Variants
from regardant.data.text_files import place, read_text
from regardant.data.tokenizers import Tokenizer
from regardant.errors import DataError
from regardant.files import flush_to_disk, write_atomically

MARKER = "text.json"
"""File that is written last: a folder that contains the file is complete."""

Tokens = NDArray[np.integer]


class TextConfig(Variants):
    """Configuration of a text. A subclass with a `kind` adds a source."""

    default_kind: ClassVar[str] = "files"

    @property
    def name(self) -> str:
        """The name of the text in messages."""
        return self.kind

    def pieces(self) -> Iterator[str]:
        """Yield the whole text, piece by piece, its splits one after the other. Raises DataError."""
        raise NotImplementedError

    def sizes(self) -> dict[str, int]:
        """Return the number of characters of each split, in text order. Raises DataError if a split would be empty."""
        raise NotImplementedError


class CutTextConfig(TextConfig):
    """Base of texts whose beginning is trained on and whose end is kept to validate and to test on."""

    validation_share: float = Field(0.1, gt=0, lt=1)
    """Share of the characters to validate on: the last ones, or those before the test set."""

    test_share: float = Field(0.0, ge=0, lt=1)
    """Share of the characters to test on: the last ones. 0: tests are on the validation text."""

    @model_validator(mode="after")
    def _leave_some_to_train_on(self) -> Self:
        if self.validation_share + self.test_share >= 1:
            raise ValueError(
                f"validation_share ({self.validation_share}) and test_share ({self.test_share}) leave nothing to "
                "train on: lower them"
            )
        return self

    def sizes(self) -> dict[str, int]:
        total = sum(map(len, self.pieces()))
        train = int(total * (1 - self.validation_share - self.test_share))
        test = int(total * self.test_share)
        sizes = {"train": train, "validation": total - train - test} | ({"test": test} if self.test_share else {})
        if min(sizes.values()) < 2:
            split_sizes = ", ".join(f"{size:,} to {name}" for name, size in sizes.items())
            raise DataError(f"{self.name}: {total:,} characters are too few to split ({split_sizes}): give more text")
        return sizes


class TextFilesConfig(CutTextConfig):
    """A text of your own, from files."""

    kind: Literal["files"] = "files"

    source: str | list[str]
    """A file, or several to be read one after the other. Plain, .gz or .zst."""

    root: str = ""
    """The folder that relative paths start from; the current one if empty."""

    @property
    def name(self) -> str:
        return str(self.source)

    def pieces(self) -> Iterator[str]:
        sources = [self.source] if isinstance(self.source, str) else self.source
        # All files are checked before the first is read, so that a missing one is reported at once.
        yield from (piece for text in [read_text(self._path(source)) for source in sources] for piece in text)

    def _path(self, source: str) -> Path:
        return place(self.root, source)


@dataclass(frozen=True)
class EncodedText:
    """Tokenised splits of a text, with the size and the fingerprint of each."""

    tokens: dict[str, Tokens]
    """Tokens of each split (train, validation and, if there is one, test), memory-mapped."""
    characters: dict[str, int]
    """Number of characters of each split."""
    fingerprints: dict[str, str]
    """SHA-256 of each split's text, as UTF-8."""

    @classmethod
    def build(cls, config: TextConfig, sizes: Mapping[str, int], tokenizer: Tokenizer, folder: Path) -> Self:
        """Read the text once, and write its tokens into `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        digests = {name: sha256() for name in sizes}
        dtype = np.uint16 if tokenizer.vocab_size <= 2**16 else np.int32
        with ExitStack() as stack:
            files = {name: stack.enter_context((folder / f"{name}.ids").open("wb")) for name in sizes}
            for name, piece in cut(config.pieces(), sizes):
                digests[name].update(piece.encode())
                tokenizer.encode_long(piece).astype(dtype).tofile(files[name])
            tokens = {name: file.tell() // np.dtype(dtype).itemsize for name, file in files.items()}
        written = {
            "dtype": np.dtype(dtype).name,
            "tokens": tokens,
            "characters": dict(sizes),
            "fingerprints": {name: digest.hexdigest() for name, digest in digests.items()},
        }
        for name in sizes:
            flush_to_disk(folder / f"{name}.ids")
        write_atomically(folder / MARKER, json.dumps(written, indent=2) + "\n")
        return cls.load(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Open the folder that `build` wrote. Raises DataError."""
        try:
            written = json.loads((folder / MARKER).read_text(encoding="utf-8"))
            tokens = {
                name: np.memmap(folder / f"{name}.ids", dtype=written["dtype"], mode="r", shape=(length,))
                for name, length in written["tokens"].items()
            }
            return cls(dict(tokens), written["characters"], written["fingerprints"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{folder} is damaged ({error}): restore it, or delete it and train again") from error


def cut(pieces: Iterable[str], sizes: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield (split, piece) of a text that is cut into splits of `sizes` characters."""
    splits = iter(sizes.items())
    name, room = next(splits)
    for piece in pieces:
        while len(piece) > room:
            yield name, piece[:room]
            piece = piece[room:]
            name, room = next(splits)
        yield name, piece
        room -= len(piece)
