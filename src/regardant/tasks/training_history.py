"""The cost of a finished training and the numbers of its validations, read from a run folder."""

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regardant.config.run_files import METRICS
from regardant.errors import RunError
from regardant.training.events import named, peak_bytes, read_events

COSTS = ["targets\na second", "minutes of\ntraining", "peak\nGiB", "parameters"]
"""Headings of the columns that `cost_cells` fills."""


@dataclass(frozen=True)
class Validation:
    """Numbers of one validation."""

    minutes: float
    """Minutes of training and validation so far."""
    scores: Mapping[str, float | None]
    """Scores by metric. None: not finite, or not measured."""


@dataclass(frozen=True)
class TrainingHistory:
    """The cost of a run, and its validations."""

    parameters: int
    memory_bytes: int
    """Peak memory of training, including that of the process itself."""
    tokens_per_second: float
    """Median number of targets per second."""
    training_seconds: float
    """Seconds of training with validations, over all resumes."""
    validations: list[Validation]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        validations = [{"minutes": one.minutes, **one.scores} for one in self.validations]
        return {**vars(self), "validations": validations}

    def cost_cells(self) -> list[str]:
        """Return the cells of COSTS."""
        return [
            f"{self.tokens_per_second:,.0f}",
            f"{self.training_seconds / 60:.1f}",
            f"{self.memory_bytes / 2**30:.2f}",
            f"{self.parameters:,}",
        ]


def read_history(folder: Path, plan: Mapping[str, Any], metrics: Sequence[str]) -> TrainingHistory:
    """Return the history of a run, given its plan and the names of its metrics. Raises RunError if there is none."""
    if "parameters" not in plan:
        raise RunError(f"{folder / 'run.yaml'} is damaged (no plan.parameters): restore it or train anew")
    path = folder / METRICS
    events = read_events(path)
    updates = named(events, "train", "memory_bytes", "tokens_per_second")
    validations = named(events, "validation")
    if not updates or not validations:
        raise RunError(f"{path} has no training with a validation: train the run to its end first")
    return TrainingHistory(
        parameters=plan["parameters"],
        memory_bytes=peak_bytes(updates),
        tokens_per_second=statistics.median(event["tokens_per_second"] for event in updates),
        training_seconds=events[-1]["time"],
        validations=[Validation(one["time"] / 60, {name: one.get(name) for name in metrics}) for one in validations],
    )


def names_from_where_paths_part(folders: Sequence[Path]) -> list[str]:
    """Return each path without the folders that all paths have in common."""
    whole = [folder.resolve() for folder in folders]
    common = os.path.commonpath([folder.parent for folder in whole])
    return [str(folder.relative_to(common)) for folder in whole]
