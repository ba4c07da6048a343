"""Modules of a user's own, which add mechanisms, positions and models by being imported.

They are named by whoever runs a command, never by a run folder: nothing that is loaded can run code.
"""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from regardant.errors import ConfigError


def import_plugins(names: Sequence[str]) -> None:
    """Import them, from the working directory as well. Raises ConfigError for one that cannot be imported."""
    if names and (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # whatever a module of the user's does
            raise ConfigError(
                f"plugin {name} cannot be imported ({type(error).__name__}: {error}): name a module as Python does, "
                "my_module for my_module.py in this folder"
            ) from error
