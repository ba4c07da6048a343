"""Formats of exported models, and their folders, which are written completely or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from regardant.errors import RunError

FORMATS = {
    "hf": ("float32",),
    "ctranslate2": ("int8", "int16", "float16", "bfloat16", "float32"),
    "onnx": ("float32", "int8"),
    "torch": ("float32",),
}
"""Formats, and the types in which each stores weights, the default first. CTranslate2 widens weights on loading if the
machine cannot compute with their type."""


def require_empty(folder: Path) -> None:
    """Raise RunError for a file, a folder that is not empty, and one that a new folder cannot replace."""
    if not folder.exists():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise RunError(f"{folder} is not empty: give another --out, or remove it")
    is_current = os.path.samefile(folder, os.curdir)
    if is_current or os.path.ismount(folder):  # neither can be renamed, which shows only when all is computed
        what = "the current folder" if is_current else "a mount point"
        raise RunError(f"{folder} is {what}, which cannot be replaced: give a folder inside it as --out")


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
