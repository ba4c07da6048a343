"""The folder of a run: where one may be begun, and the lock by which one process trains into it at a time.

The lock belongs to an open file. The kernel releases it when the process ends, whatever ends it. A kill leaves the file
behind, but no lock. The followers of a training do not take it: their leader holds it for them.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regardant.errors import RunError

UNFINISHED = ".regardant-unfinished"
"""File that marks the folder of a run until its run.yaml is there."""

LOCK = ".regardant-lock"
"""File in the run folder that is locked. It holds the number of the process that trains."""

WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""Errors of a file system that has no locks, where training goes on without one."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make the folder if need be, and hold its lock. Raises RunError if another process holds it."""
    descriptor = _lock(folder)
    try:
        yield
    finally:
        (folder / LOCK).unlink(missing_ok=True)  # before it is released: afterwards it may be another process's
        os.close(descriptor)


def require_free(folder: Path) -> None:
    """Raise RunError for a place that is no folder, or holds something else than the start of a run."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file, where the folder of a run is needed: give another --out")
    if not (folder / UNFINISHED).is_file() and set(names_in(folder)) - {LOCK}:
        raise RunError(f"{folder} is not empty and no run (no run.yaml): give another --out, or remove it")


def clear_start(folder: Path) -> None:
    """Mark the folder as that of a run, and remove the data of a start that ended before its run.yaml."""
    (folder / UNFINISHED).touch()
    shutil.rmtree(folder / "data", ignore_errors=True)
    (folder / "tokenizer.json").unlink(missing_ok=True)


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, none if there is no such folder."""
    return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []


def _lock(folder: Path) -> int:
    """Return the descriptor of the locked file, which has the number of this process in it."""
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)  # not inherited by other programs
        except OSError as error:
            raise RunError(f"{folder} cannot be written ({error.strerror}): give another --out") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", errors="replace")
            os.close(descriptor)
            process = f"process {holder}" if holder.isdecimal() else "another process"
            raise RunError(
                f"{folder} is in use: {process} is training into it; wait for it, stop it, or give another --out"
            ) from error
        except OSError as error:
            if error.errno not in WITHOUT_LOCKS:
                os.close(descriptor)
                raise
        if _is_file(descriptor, folder / LOCK):
            os.ftruncate(descriptor, 0)  # of the number of a process that was killed
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            return descriptor
        os.close(descriptor)  # its holder removed the file between opening and locking


def _is_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
