"""Folders of exported models, written completely or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from regardant.errors import RunError


def require_empty(folder: Path) -> None:
    """Raise RunError if `folder` is a file or a folder that is not empty."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise RunError(f"{folder} is not empty: give another --out, or remove it")


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield a new folder that takes the place of `folder` when the block ends without an error."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        part = Path(scratch) / "new"
        part.mkdir()
        yield part
        with suppress(FileNotFoundError):
            os.rename(folder, Path(scratch) / "old")
        os.rename(part, folder)
