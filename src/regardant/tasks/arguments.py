"""Checks of the arguments of a run: options that its task does not take, and names of test sets."""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from regardant.errors import ConfigError

OWN_SETS = ("test", "validation")
"""Names of a run's own sets that are evaluated where it holds them."""


def refuse_options(doing: str, options: Mapping[str, Any]) -> None:
    """Raise ConfigError for options that are not None. `doing` begins the message: "a language model is scored"."""
    if given := [name for name, value in options.items() if value is not None]:
        raise ConfigError(f"{doing} without {', '.join(given)}: leave that out")


def name_of_set(file: Path) -> str:
    """Return the name of the test set in a file or folder. A folder given as `.` or `..` has its own name."""
    # Path.resolve follows links: a link into a content-addressed store would be named by a hash.
    return Path(os.path.abspath(file)).name


def require_new_names(files: Sequence[Path], own: Collection[str], run: Path) -> None:
    """Raise ConfigError for test sets whose scores would replace others in RUN/evaluation, where the name of a file
    names its scores. `own` are the names of the run's own sets."""
    names = [name_of_set(file) for file in files]
    for name in names:
        if name in own:
            raise ConfigError(f"--data {name} has the name of a test set of {run}: rename the file")
        if (count := names.count(name)) > 1:
            raise ConfigError(f"--data was given {count} files named {name}: rename all but one")
