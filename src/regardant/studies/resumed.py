"""Checks of a study that is resumed: its settings file, its minutes, its evaluated runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regardant.config.run_files import EVALUATION, WEIGHTS
from regardant.errors import ConfigError, RunError
from regardant.run.fingerprints import SUMS


@contextmanager
def naming_damage(file: Path) -> Iterator[None]:
    """Raise RunError with the name of a file whose content the block cannot parse."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        raise RunError(f"{file} is damaged ({error}): give another --out") from error


def require_minutes(folder: Path, begun_with: float, minutes: float) -> None:
    """Raise ConfigError for a study that was begun with other minutes."""
    if begun_with != minutes:
        raise ConfigError(f"{folder} was begun with --minutes {begun_with:g}: give the same, or another --out")


def is_evaluated(run: Path) -> bool:
    """Return whether a run was evaluated to the end after its weights were written.

    Test sets are written one after the other, and the sums of all of them last.
    """
    weights, sums = run / WEIGHTS, run / EVALUATION / SUMS
    return weights.is_file() and sums.is_file() and sums.stat().st_mtime >= weights.stat().st_mtime
