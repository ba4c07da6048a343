"""Plugins: modules of a user, whose import adds mechanisms, positions, models or tasks.

The user names them on the command line or in Python. A run folder never does, so that loading one cannot run code.
"""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from regardant.errors import ConfigError


def import_plugins(names: Sequence[str]) -> None:
    """Import modules, also from the working directory. Raises ConfigError for one that cannot be imported."""
    if names and (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # a user's module may raise anything
            raise ConfigError(
                f"plugin {name} cannot be imported ({type(error).__name__}: {error}): name a module as Python does, "
                "my_module for my_module.py in this folder"
            ) from error
