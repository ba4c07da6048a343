"""Recognition of run folders without importing torch."""

from pathlib import Path

from regardant.config.did_you_mean import did_you_mean
from regardant.errors import RunError


def run_file(run: Path) -> Path:
    """Return the run.yaml of a run folder. Raises RunError if there is none."""
    if not run.is_dir():
        near = did_you_mean(run.name, names_in(run.parent))
        raise RunError(f"there is no run {run}{near or ': give a folder that `regardant train` has made'}")
    if not (run / "run.yaml").is_file():
        raise RunError(f"{run} is no run, or half written (no run.yaml): train into it first")
    return run / "run.yaml"


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, or none if there is no such folder."""
    return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
