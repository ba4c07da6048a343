"""Versions of the format of run folders, and the migrations that read earlier ones.

`format` in run.yaml is a whole number, which grows by one whenever an earlier version of the program could misread what
is written now. A folder is migrated in memory when it is read; a training that is resumed writes it anew. Golden runs
of every format are kept in `tests/golden`.

    1    has no `format`; runs of the first versions have no fingerprints of files
    2    has `format`, and `files` with a fingerprint of each
"""

from collections.abc import Callable
from typing import Any

from regardant.errors import RunError

FORMAT = 2
"""Format that this version writes."""


def migrated(content: dict[str, Any], origin: str) -> dict[str, Any]:
    """Return the content of a run.yaml in the present format. Raises RunError for a format that is unknown here."""
    found = content.get("format", 1)
    if type(found) is not int or found < 1:
        raise RunError(f"{origin}: format: given {found!r}; allowed: 1 to {FORMAT}: restore the file, or train anew")
    if found > FORMAT:
        raise RunError(
            f"{origin} is of format {found}, and this version reads up to {FORMAT}: install the version of regardant "
            f"that wrote it ({content.get('regardant', 'unknown')}) or a later one"
        )
    for step in MIGRATIONS[found - 1 :]:
        content = step(content)
    return {**content, "format": FORMAT}


def _add_files(content: dict[str, Any]) -> dict[str, Any]:
    """Add the entry `files`, empty if this run of format 1 has no fingerprints of files."""
    return {"files": {}, **content}


MIGRATIONS: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = (_add_files,)
"""The step from each format to the next, from format 1 on."""

assert len(MIGRATIONS) == FORMAT - 1
