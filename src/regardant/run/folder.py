"""The folder of a run: its run.yaml, the check that a new run may begin there, and the lock of the training process.

The lock belongs to an open file, and the kernel releases it when the process ends in any way. A killed process leaves
the file behind, but no lock. Followers of a training take no lock: their leader holds it for them.

RUN/run.yaml            format, configuration as given and as resolved, decisions, fingerprints, the plan
RUN/.regardant-lock     locked while a process trains into the folder
"""

import errno
import fcntl
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import yaml

from regardant import __version__
from regardant import config as configuration
from regardant.config.documents import Dumper
from regardant.config.run_files import RECORD, TOKENIZER, names_in, run_file
from regardant.errors import ConfigError, RunError
from regardant.files import PART, write_atomically
from regardant.planning.probes import Decisions
from regardant.run.fingerprints import require_as_written, with_fingerprint
from regardant.run.migrations import FORMAT, migrated
from regardant.tasks import load_recipe
from regardant.tasks.base import TaskConfig

UNFINISHED = ".regardant-unfinished"
"""File that marks the folder of a run until its run.yaml exists."""

IMPORTED = "imported_from"
"""Entry of the plan of a run that was imported: the folder of its model."""

LOCK = ".regardant-lock"
"""Locked file in the run folder. It contains the id of the process that trains."""

WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""Error codes of a file system without locks, on which training runs without a lock."""

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
"""Error codes of a disk that is full, over the user's quota, or read-only."""


@dataclass(frozen=True)
class Record:
    """The content of run.yaml."""

    asked: TaskConfig
    """Configuration as the user gave it. Fields that were left open are omitted from `asked` in run.yaml, and chosen
    anew where that file is the recipe of another run."""
    config: TaskConfig
    """Configuration with every `auto` resolved."""
    decided: Decisions
    fingerprints: dict[str, str]
    """Fingerprints of the data, by split."""
    plan: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the files that the model is opened from and of those under data/, by name. Empty for runs of earlier
    versions; without the weights during training."""

    def write(self, run: Path) -> None:
        """Write run.yaml into a run folder."""
        content = {
            "format": FORMAT,
            "regardant": __version__,
            "versions": {"python": platform.python_version(), "torch": str(torch.__version__)},
            "asked": self.asked.model_dump(mode="json", by_alias=True, exclude_unset=True),
            "config": self.config.model_dump(mode="json", by_alias=True),
            "decided": self.decided.as_dict(),
            "fingerprints": self.fingerprints,
            "plan": self.plan,
            "files": self.files,
        }
        text = yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True)
        write_atomically(run / RECORD, with_fingerprint(text))

    @classmethod
    def read(cls, run: Path) -> "Record":
        """Return the record of a run folder. Raises RunError if it is not a complete run."""
        file = run_file(run)
        try:
            origin = str(file)
            content = migrated(configuration.read_yaml(file), origin)
            require_as_written(file)
            return cls(
                asked=load_recipe(content["asked"], origin=origin),
                config=load_recipe(content["config"], origin=origin),
                decided=Decisions.from_dict(content["decided"]),
                fingerprints=content["fingerprints"],
                plan=content["plan"],
                files=_texts_by_name(content["files"]),
            )
        except ConfigError as error:
            raise ConfigError("; ".join(line.strip() for line in str(error).splitlines())) from error
        except KeyError as error:
            raise RunError(f"{run / 'run.yaml'} is damaged (no {error}): restore it or train anew") from error
        except (TypeError, ValueError, AttributeError) as error:
            raise RunError(f"{run / 'run.yaml'} is damaged ({error}): restore it or train anew") from error


def _texts_by_name(files: Any) -> dict[str, str]:
    if not isinstance(files, dict) or not all(isinstance(one, str) for entry in files.items() for one in entry):
        raise TypeError("`files` must be a mapping of names to fingerprints")
    return files


def require_verb(folder: Path, config: TaskConfig, verb: str) -> None:
    """Raise RunError for a run whose task lacks a verb."""
    if verb not in config.verbs:
        known = ", ".join((*config.verbs, "predict"))
        raise RunError(f"{folder} is a run of {config.task}, which has no {verb}: it has {known}")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is created if missing. Raises RunError if another process holds it."""
    descriptor = _lock(folder)
    try:
        yield
    finally:
        (folder / LOCK).unlink(missing_ok=True)  # before the release: afterwards the file may be another process's
        os.close(descriptor)


@contextmanager
def named_full_disk(folder: Path) -> Iterator[None]:
    """Raise RunError with the folder's name if its disk is full or read-only."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise RunError(f"cannot write {folder} ({os.strerror(error.errno)}); is the disk full or read-only?") from error


def require_free(folder: Path) -> None:
    """Raise RunError unless a new run may begin in a folder: it must be absent, empty, or hold an unfinished start."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file, where the folder of a run is needed: give another --out")
    if not (folder / UNFINISHED).is_file() and set(names_in(folder)) - {LOCK}:
        raise RunError(f"{folder} is not empty and no run (no run.yaml): give another --out, or remove it")


def clear_start(folder: Path) -> None:
    """Mark the folder as that of a run, and remove the data of a start that ended before run.yaml was written."""
    (folder / UNFINISHED).touch()
    shutil.rmtree(folder / "data", ignore_errors=True)
    for left in (folder / TOKENIZER, *folder.glob(f"*{PART}")):
        left.unlink(missing_ok=True)


def _lock(folder: Path) -> int:
    """Lock the folder; return the descriptor of the locked file, which contains the id of this process."""
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
            os.ftruncate(descriptor, 0)  # a process that was killed has left its id
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            return descriptor
        os.close(descriptor)  # its holder removed the file between opening and locking


def _is_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
