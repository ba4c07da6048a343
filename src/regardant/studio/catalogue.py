"""The runs of the studio: the given run folders and the runs below given folders, listed anew for each request."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regardant.config.run_files import METRICS, RECORD, WEIGHTS
from regardant.data.item_files import shown_name
from regardant.errors import RegardantError, RunError, one_line
from regardant.run import Record
from regardant.training.events import last_events

DEPTH = 3
"""Levels below a given folder that are searched for runs."""


class UnknownRun(RunError):
    """Error for a name that is not a run of the studio."""


@dataclass(frozen=True)
class Catalogue:
    """Runs by name: the path as given, or as found below a given folder."""

    folders: Sequence[Path]

    def runs(self) -> dict[str, Path]:
        """Return all runs that exist now."""
        found = [run for folder in self.folders for run in _runs_in(folder, DEPTH)]
        return {shown_name(run.as_posix()): run for run in found}

    def folder(self, name: str) -> Path:
        """Return the folder of a run. Raises UnknownRun for a run that is not listed: no other path is opened."""
        runs = self.runs()
        if name not in runs:
            raise UnknownRun(f"there is no run {name!r} here: choose one listed on the page Runs")
        return runs[name]


def summary(name: str, folder: Path) -> dict[str, Any]:
    """Return the row of a run in the list of runs: its recipe and its state, or why it cannot be read."""
    try:
        record = Record.read(folder)
    except RegardantError as error:
        return {"run": name, "problem": one_line(error)}
    events = last_events(folder / METRICS)
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
        "trained": (folder / WEIGHTS).is_file(),
    }


def _runs_in(folder: Path, depth: int) -> list[Path]:
    """Return the runs in a folder. Empty if it may not be read, such as lost+found, or is being removed."""
    try:
        if (folder / RECORD).is_file():
            return [folder]
        below = sorted(path for path in folder.iterdir() if _may_hold_runs(path)) if depth and folder.is_dir() else []
    except OSError:
        return []
    return [run for path in below for run in _runs_in(path, depth - 1)]


def _may_hold_runs(path: Path) -> bool:
    """Return whether a path is searched for runs. A hidden folder is a run that is being imported."""
    return path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
