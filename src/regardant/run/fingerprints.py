"""Fingerprints of a run's files: a file that was damaged or replaced after training is refused, since weights or a
vocabulary that can still be read may answer wrongly without an error."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from regardant.errors import RunError

WEIGHTS = "model.safetensors"


def fingerprint(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint_of_settings(settings: Any) -> str:
    """Return the SHA-256 of plain values: of what they are as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def fingerprints_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the fingerprints of those files that are in a folder."""
    return {name: fingerprint(folder / name) for name in names if (folder / name).is_file()}


def require_unchanged(folder: Path, expected: Mapping[str, str]) -> None:
    """Raise RunError for a file that is not what training wrote. Files that are missing are left to their readers."""
    for name, found in fingerprints_of(folder, expected).items():
        if found != expected[name]:
            raise RunError(
                f"{folder / name} is not what training wrote (its SHA-256 is not that in run.yaml): restore the file, "
                "or train anew; if you changed it on purpose, remove its line under `files` in run.yaml"
            )
