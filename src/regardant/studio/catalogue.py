"""The runs that the studio knows: those it was given, and those below folders it was given, at each moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regardant.errors import RegardantError, RunError
from regardant.run import Record
from regardant.training.events import last_events

DEPTH = 3
"""How far below a given folder runs are looked for."""


class UnknownRun(RunError):
    """A name that is no run of the studio's."""


@dataclass(frozen=True)
class Catalogue:
    """Runs by name: the path as it was given, or found below a folder that was given."""

    folders: Sequence[Path]

    def runs(self) -> dict[str, Path]:
        """Return all runs that exist now."""
        found = [run for folder in self.folders for run in _runs_in(folder, DEPTH)]
        return {run.as_posix(): run for run in found}

    def folder(self, name: str) -> Path:
        """Return the folder of a run. Raises UnknownRun for a run that is not listed: no other path is opened."""
        runs = self.runs()
        if name not in runs:
            raise UnknownRun(f"there is no run {name!r} here: choose one that the page Runs lists")
        return runs[name]


def summary(name: str, folder: Path) -> dict[str, Any]:
    """Return the row of a run in the list of runs: its recipe, its state, and the line of a problem."""
    try:
        record = Record.read(folder)
    except RegardantError as error:
        return {"run": name, "problem": " ".join(str(error).split())}
    events = last_events(folder / "metrics.jsonl")
    validated = events.get("validation", {})
    return {
        "run": name,
        "task": record.config.task,
        "verbs": record.config.verbs,
        "inspect_options": record.config.inspect_options,
        "views": record.config.views,
        "suffixes": record.config.suffixes,
        "unit": record.plan.get("unit", "target"),
        "loss_unit": next((one.unit for one in record.config.metrics if one.name == "loss"), ""),
        "parameters": record.plan.get("parameters"),
        "best_by": record.config.metric.name,
        "best": next((value for key, value in validated.items() if key.startswith("best_")), None),
        "update": max((event["update"] for event in events.values()), default=0),
        "seconds": max((event["time"] for event in events.values()), default=0.0),
        "progress": events.get("train", {}).get("progress") or 0.0,
        "trained": (folder / "model.safetensors").is_file(),
    }


def _runs_in(folder: Path, depth: int) -> list[Path]:
    """Return the runs in a folder. Empty for one that may not be read, as lost+found, or that is just being removed."""
    try:
        if (folder / "run.yaml").is_file():
            return [folder]
        below = sorted(path for path in folder.iterdir() if _may_hold_runs(path)) if depth and folder.is_dir() else []
    except OSError:
        return []
    return [run for path in below for run in _runs_in(path, depth - 1)]


def _may_hold_runs(path: Path) -> bool:
    """Return whether runs are looked for in a path. A hidden folder is of a run that is just being imported."""
    return path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
