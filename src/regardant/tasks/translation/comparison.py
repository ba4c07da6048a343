"""Evaluated runs side by side: what each scores on the test sets all share, what it costs, and how it got there."""

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regardant.errors import RunError
from regardant.evaluation.comparison import Compared, Signatures, compare_translations
from regardant.evaluation.translation import TranslationMetrics
from regardant.tasks.translation.evaluation import Evaluated, read_evaluated
from regardant.training.reporting import read_events

Sets = Mapping[str, Evaluated]
"""What is kept of a run's evaluation, by name of the test set."""


@dataclass(frozen=True)
class Validation:
    """What training said of itself at some point."""

    minutes: float
    """Of training and validation so far."""
    loss: float | None
    """Nats a token. None where it was no number, as for all that follows."""
    bleu: float | None
    """Of greedy translations."""


@dataclass(frozen=True)
class Training:
    """What a run cost, and how it went."""

    parameters: int
    memory_bytes: int
    """The most that training held, with what the process brings along."""
    tokens_per_second: float
    """Target tokens, the median over training."""
    training_seconds: float
    """With validations, over all resumes."""
    validations: list[Validation]


@dataclass(frozen=True)
class SharedSet:
    """A test set that all runs were evaluated on."""

    name: str
    sentences: int
    signatures: Signatures
    decoding: dict[str, str]
    """How each run's translations were searched for, by its name."""


@dataclass(frozen=True)
class ComparedRun:
    """One of the runs."""

    folder: Path
    name: str
    """As much of the folder's path as tells it from the others."""
    training: Training
    tests: dict[str, Compared]
    """By name of the shared set."""


@dataclass(frozen=True)
class Comparison:
    """Runs, each measured against the first."""

    runs: list[ComparedRun]
    sets: list[SharedSet]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for --json."""
        shared = {
            one.name: {
                "sentences": one.sentences,
                "signature": one.signatures.bleu,
                "chrf_signature": one.signatures.chrf,
            }
            for one in self.sets
        }
        return {
            "runs": [
                {
                    "run": str(run.folder),
                    **asdict(run.training),
                    "tests": {name: {**asdict(scores), **shared[name]} for name, scores in run.tests.items()},
                }
                for run in self.runs
            ]
        }


def compare_runs(plans: Mapping[Path, Mapping[str, Any]], metrics: TranslationMetrics) -> Comparison:
    """Compare run folders, given the plan each was begun with; all are scored alike, as `metrics` says.

    Raises RunError where a run was not evaluated, or where no test set is the same for all.
    """
    evaluated = {folder: _evaluated(folder) for folder in plans}
    trainings = [_training(folder, plan) for folder, plan in plans.items()]
    names = names_from_where_paths_part(list(plans))
    tests: list[dict[str, Compared]] = [{} for _ in names]
    sets = []
    for name in shared_sets(evaluated):
        kept = [one[name] for one in evaluated.values()]
        compared, signatures = compare_translations(
            kept[0].sources, kept[0].references, [one.hypotheses for one in kept], metrics
        )
        for of_run, scores in zip(tests, compared, strict=True):
            of_run[name] = scores
        decoding = {run: _decoding(one) for run, one in zip(names, kept, strict=True)}
        sets.append(SharedSet(name, len(kept[0].sources), signatures, decoding))
    runs = [ComparedRun(*parts) for parts in zip(plans, names, trainings, tests, strict=True)]
    return Comparison(runs, sets)


def shared_sets(evaluated: Mapping[Path, Sets]) -> list[str]:
    """The names of the test sets that all runs were evaluated on.

    Raises RunError where there is none, and where sets of one name differ, with the runs and what differs.
    """
    first, *others = evaluated
    common = [name for name in evaluated[first] if all(name in evaluated[other] for other in others)]
    if not common:
        told = "; ".join(f"{run} on {', '.join(sets)}" for run, sets in evaluated.items())
        raise RunError(f"no test set is common to all runs ({told}): evaluate all on one, by regardant evaluate --data")
    for name in common:
        if differing := _differing(evaluated, name):
            told = "; ".join(f"{run} in evaluation/{file}" for run, file in differing.items())
            raise RunError(
                f"test sets differ from those of {first} ({told}): compare runs that were evaluated on the same one"
            )
    return common


def names_from_where_paths_part(folders: Sequence[Path]) -> list[str]:
    """Each path without the folders that all have in common."""
    whole = [folder.resolve() for folder in folders]
    common = os.path.commonpath([folder.parent for folder in whole])
    return [str(folder.relative_to(common)) for folder in whole]


def _differing(evaluated: Mapping[Path, Sets], name: str) -> dict[Path, str]:
    """The runs whose set of that name is not the first run's, with the file that differs."""
    first, *others = evaluated
    expected, found = evaluated[first][name], {}
    for other in others:
        given = evaluated[other][name]
        if given.sources != expected.sources:
            found[other] = f"{name}.src"
        elif given.references != expected.references:
            found[other] = f"{name}.ref"
    return found


def _evaluated(folder: Path) -> Sets:
    kept, weights = read_evaluated(folder), folder / "model.safetensors"
    if not kept:
        raise RunError(f"{folder} was not evaluated: evaluate it first: regardant evaluate {folder}")
    for name in kept:
        if weights.is_file() and weights.stat().st_mtime > (folder / "evaluation" / f"{name}.json").stat().st_mtime:
            raise RunError(f"{folder} was trained on after {name} was evaluated: evaluate it anew")
    return kept


def _training(folder: Path, plan: Mapping[str, Any]) -> Training:
    if "parameters" not in plan:
        raise RunError(f"{folder / 'run.yaml'} is damaged (no plan.parameters): restore it or train anew")
    path = folder / "metrics.jsonl"
    events = read_events(path)
    updates = [event for event in events if event["event"] == "train"]
    validations = [event for event in events if event["event"] == "validation"]
    if not updates or not validations:
        raise RunError(f"{path} tells of no training with a validation: train the run to its end first")
    return Training(
        parameters=plan["parameters"],
        memory_bytes=max(event["memory_bytes"] for event in updates),
        tokens_per_second=statistics.median(event["tokens_per_second"] for event in updates),
        training_seconds=events[-1]["time"],
        validations=[Validation(one["time"] / 60, one.get("loss"), one.get("bleu")) for one in validations],
    )


def _decoding(kept: Evaluated) -> str:
    return f"beam size {kept.scores.get('beam_size')}, length penalty {kept.scores.get('length_penalty')}"
