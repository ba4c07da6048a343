"""Comparison of evaluated runs: scores on the test sets that all share, costs, and curves of validations."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regardant.errors import RunError
from regardant.evaluation.comparison import ComparedTranslation, Signatures, compare_translations
from regardant.evaluation.translation import TranslationMetrics
from regardant.tasks.evaluated_weights import require_current
from regardant.tasks.training_history import (
    TrainingHistory,
    names_from_where_paths_part,
    read_history,
)
from regardant.tasks.translation.evaluate.evaluation import Evaluated, read_evaluated

KeptEvaluations = Mapping[str, Evaluated]
"""Kept evaluations of a run by name of the test set."""

CURVES = ("loss", "bleu")
"""Metrics of a validation that are compared."""


@dataclass(frozen=True)
class SharedSet:
    """A test set that all runs were evaluated on."""

    name: str
    sentences: int
    signatures: Signatures
    decoding: dict[str, str]
    """Beam size and length penalty of each run's translations, by name of the run."""


@dataclass(frozen=True)
class ComparedTranslator:
    """A run of a comparison."""

    folder: Path
    name: str
    """Shortest end of the folder's path that differs from those of the others."""
    training: TrainingHistory
    tests: dict[str, ComparedTranslation]
    """Comparisons by name of the shared set."""


@dataclass(frozen=True)
class Comparison:
    """Runs, each compared with the first."""

    runs: list[ComparedTranslator]
    sets: list[SharedSet]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
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
                    **run.training.as_dict(),
                    "tests": {name: {**asdict(scores), **shared[name]} for name, scores in run.tests.items()},
                }
                for run in self.runs
            ]
        }


def compare_runs(plans: Mapping[Path, Mapping[str, Any]], metrics: TranslationMetrics) -> Comparison:
    """Compare run folders, given the plan of each. All are scored with the same settings, `metrics`.

    Raises RunError if a run was not evaluated, or no test set is the same for all.
    """
    evaluated = {folder: _evaluated(folder) for folder in plans}
    trainings = [read_history(folder, plan, CURVES) for folder, plan in plans.items()]
    names = names_from_where_paths_part(list(plans))
    tests: list[dict[str, ComparedTranslation]] = [{} for _ in names]
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
    runs = [ComparedTranslator(*parts) for parts in zip(plans, names, trainings, tests, strict=True)]
    return Comparison(runs, sets)


def shared_sets(evaluated: Mapping[Path, KeptEvaluations]) -> list[str]:
    """Return the names of the test sets that all runs were evaluated on.

    Raises RunError if there is none, or if sets of one name differ; the message names the runs and the files.
    """
    first, *others = evaluated
    common = [name for name in evaluated[first] if all(name in evaluated[other] for other in others)]
    if not common:
        known = "; ".join(f"{run} on {', '.join(sets)}" for run, sets in evaluated.items())
        raise RunError(
            f"no test set is common to all runs ({known}): evaluate all on one, by regardant evaluate --data"
        )
    for name in common:
        if differing := _differing(evaluated, name):
            files = "; ".join(f"{run} in evaluation/{file}" for run, file in differing.items())
            raise RunError(
                f"test sets differ from those of {first} ({files}): compare runs that were evaluated on the same set"
            )
    return common


def _differing(evaluated: Mapping[Path, KeptEvaluations], name: str) -> dict[Path, str]:
    """Return the runs whose set of that name differs from the first run's, with the file that differs."""
    first, *others = evaluated
    expected, found = evaluated[first][name], {}
    for other in others:
        given = evaluated[other][name]
        if given.sources != expected.sources:
            found[other] = f"{name}.src"
        elif given.references != expected.references:
            found[other] = f"{name}.ref"
    return found


def _evaluated(folder: Path) -> KeptEvaluations:
    kept = read_evaluated(folder)
    require_current(folder, list(kept))
    return kept


def _decoding(kept: Evaluated) -> str:
    return f"beam size {kept.scores.get('beam_size')}, length penalty {kept.scores.get('length_penalty')}"
