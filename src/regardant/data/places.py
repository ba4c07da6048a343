"""Where files of a recipe are: relative to its `root`, which may name environment variables."""

import os
import re
from pathlib import Path

from regardant.errors import DataError


def place(root: str, name: str) -> Path:
    """Return the path of a file that a recipe names. `~` and ${REGARDANT_DATA}-like variables in root are expanded.

    Raises DataError for a variable that is not set.
    """
    expanded = os.path.expandvars(root)
    if missing := re.search(r"\$\{?(\w+)", expanded):
        name = missing[1]
        raise DataError(f"data.root names {name}, which is not set: export {name}=FOLDER, or --set data.root=FOLDER")
    return Path(expanded).expanduser() / name
