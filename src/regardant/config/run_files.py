"""Files of a run folder that several rooms name, and recognition of run folders without importing torch."""

from pathlib import Path

from regardant.config.did_you_mean import did_you_mean
from regardant.errors import RunError

RECORD = "run.yaml"
"""Settings of a run, its plan, and fingerprints of its files; without it a folder is no run."""

TOKENIZER = "tokenizer.json"
"""The vocabulary, where items have a text."""

WEIGHTS = "model.safetensors"
"""The weights kept so far."""

METRICS = "metrics.jsonl"
"""The events of training, one a line."""

EVALUATION = "evaluation"
"""Folder with scores and answers of test sets."""


def run_file(run: Path) -> Path:
    """Return the run.yaml of a run folder. Raises RunError if there is none."""
    if not run.is_dir():
        near = did_you_mean(run.name, names_in(run.parent))
        raise RunError(f"there is no run {run}{near or ': give a folder that `regardant train` has made'}")
    if not (run / RECORD).is_file():
        raise RunError(f"{run} is no run, or half written (no {RECORD}): train into it first")
    return run / RECORD


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, or none if there is no such folder."""
    return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
