"""The labels of a run by number, kept beside its weights."""

import json
from collections.abc import Sequence
from pathlib import Path

from regardant.errors import DataError, RunError
from regardant.files import write_atomically
from regardant.tasks.base import Log
from regardant.tasks.take_over import require_same_files
from regardant.training.config import TrainingConfig

LABELS = "labels.json"

SHOWN = 10
"""Number of labels in a line of the log or of an error."""


def keep_labels(labels: Sequence[str], run: Path, training: TrainingConfig, log: Log) -> None:
    """Log the labels and keep them in a run folder.

    Raises DataError for a single label, ConfigError if a head of other labels is taken over.
    """
    if len(labels) == 1:
        raise DataError(f"all training items have the label {labels[0]!r}: give items of two labels or more")
    log(f"{len(labels)} labels: {', '.join(labels[:SHOWN])}{', ...' if len(labels) > SHOWN else ''}")
    write_atomically(run / LABELS, json.dumps(labels, ensure_ascii=False) + "\n")
    require_same_files((LABELS,), training, run)


def read_labels(run: Path) -> list[str]:
    """Return the labels of a run by number. Raises RunError for a damaged file."""
    try:
        labels: list[str] = json.loads((run / LABELS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{run / LABELS} is damaged ({error}): restore it or train again") from error
    return labels
