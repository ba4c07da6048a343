"""Files that are complete or absent, even if the process is killed.

A file is written beside its final path, flushed to disk and renamed, so that a reader finds the old or the new file.
Several processes may write one path: each writes beside it under a name of its own, and the last to rename wins.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from regardant.errors import RunError, WriteError, first_line

PART = ".part"
"""Suffix of a file that is still being written."""


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write `content` (text as UTF-8) to `path`, in one step for every reader. Makes the folder if need be.

    The target of a symbolic link is replaced. A device or a pipe is written to directly. Raises RunError if `path` is a
    folder, WriteError if it cannot be written.
    """
    written = content.encode() if isinstance(content, str) else content
    with _named_errors(path):
        if path.is_dir():
            raise RunError(f"cannot write {path}, which is a folder: give the name of a file")
        if path.exists() and not path.is_file():
            path.write_bytes(written)
            return
        target = path.resolve() if path.is_symlink() else path
    with replacing(target) as part:
        part.write_bytes(written)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to. It is renamed to `path` at the end, or deleted after an exception. Raises WriteError
    if the file cannot be written."""
    part = path.with_name(f"{path.name}.{uuid4().hex}{PART}")
    with _named_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            flush_to_disk(part)
            os.replace(part, path)
            flush_to_disk(path.parent)  # makes the renaming permanent
        finally:
            part.unlink(missing_ok=True)


def flush_to_disk(path: Path) -> None:
    """Return when the content of a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Raise WriteError with the name of a path that cannot be written."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # torch has its own error for a full disk
        raise WriteError(f"cannot write {path} ({first_line(error)}); is the disk full or read-only?") from error
