"""Files that hold one item each, in a folder, in a .zip archive or in the cells of a table."""

import hashlib
import os
import zipfile
import zlib
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

from regardant.data.text_files import near_names
from regardant.errors import DataError, first_line


@dataclass(frozen=True)
class StoredFile:
    """A file whose content is a cell of a table."""

    name: str
    """Place of the cell, for messages."""
    suffix: str
    """Suffix of the path stored with the content. Empty if there is none."""
    content: bytes

    def __str__(self) -> str:
        return self.name

    def read_bytes(self) -> bytes:
        """Return the content."""
        return self.content


ItemFile = Path | zipfile.Path | StoredFile
"""A file of a folder, of an archive or of a table. All have `name`, `suffix` and `read_bytes`."""

READ_ERRORS = (OSError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""Exceptions of `read_bytes`. RuntimeError: an archive is encrypted."""

OF_SYSTEMS = "__MACOSX"
"""Folder that macOS adds to archives. It holds no items."""


def list_item_files(source: Path) -> dict[str, ItemFile]:
    """Return the files of a folder or .zip archive by their paths inside it, in the order of the paths.

    Hidden files are left out. Raises DataError for a source that is missing or cannot be read.
    """
    if source.is_dir():
        found: dict[str, ItemFile] = {
            path.relative_to(source).as_posix(): path for path in source.rglob("*") if path.is_file()
        }
    elif source.is_file():
        try:
            archive = zipfile.ZipFile(source)
        except (OSError, zipfile.BadZipFile) as error:
            raise DataError(
                f"{source} is neither a folder nor a .zip archive ({first_line(error)}): give one"
            ) from error
        found = {name: zipfile.Path(archive, name) for name in archive.namelist() if not name.endswith("/")}
    else:
        raise DataError(f"there is no folder or archive {source}; {near_names(source)}")
    return {name: found[name] for name in sorted(found) if not _is_hidden(name)}


def shown_name(item: object) -> str:
    """Return the path of a file, with a replacement character for each byte that is not UTF-8."""
    return os.fsencode(str(item)).decode(errors="replace")


def read_item_file(file: ItemFile, allowed: str) -> bytes:
    """Return the content of a file. Raises UnreadableFileError, whose message gives the `allowed` files."""
    try:
        return file.read_bytes()
    except READ_ERRORS as error:
        raise unreadable_file(file, error, allowed) from error


def content_key(file: ItemFile) -> Hashable:
    """Return a key that files of one content share. That of a file that cannot be read is its name."""
    try:
        return hashlib.blake2b(file.read_bytes(), digest_size=16).digest()
    except READ_ERRORS:
        return str(file)


class UnreadableFileError(DataError):
    """A file of one item whose content cannot be read."""


def unreadable_file(file: ItemFile, error: Exception, allowed: str) -> UnreadableFileError:
    """Return the error for a file that cannot be read, with the reason and the `allowed` files."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else first_line(error)
    return UnreadableFileError(
        f"{shown_name(file)} cannot be read ({reason.partition(' <')[0]}): give {allowed}, or leave it out"
    )


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") or part == OF_SYSTEMS for part in name.split("/"))
