"""Evaluated runs of one task side by side: scores on the test sets that all share, costs, curves, settings.

RUN/evaluation/NAME.json                 scores of a test set
RUN/evaluation/NAME.predictions.jsonl    its items in their order: {"target", "answer", ...}, where a task keeps them;
                                         "right", true or false, if a right answer may differ from the target; "item",
                                         the number of the item, if items have several answers, a line each
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import Any, Protocol

from regardant.config.differences import differences
from regardant.config.run_files import EVALUATION
from regardant.errors import RunError
from regardant.evaluation.paired import Difference, paired_bootstrap
from regardant.pictures import (
    Chapter,
    Curve,
    Estimate,
    Estimates,
    Table,
    interval_chart,
    line_chart,
    report_page,
    tables_in_notebook,
)
from regardant.tasks.evaluated_weights import require_current
from regardant.tasks.training_history import (
    COSTS,
    TrainingHistory,
    names_from_where_paths_part,
    read_history,
)
from regardant.training.metrics import Metric

COLUMN_WIDTH = 13
"""Maximum number of characters in a line of a metric's name."""

NOTHING = "–"
"""The cell of the first run, which is not compared with itself."""

UNCOMPARED = frozenset({"task"})
"""Fields of a configuration that are equal in all compared runs."""

PREDICTIONS = ".predictions.jsonl"


TESTED = {"accuracy": "accuracy", "exact_match": "exact match", "zero_shot_accuracy": "zero-shot accuracy"}
"""Names of the tested score, the share of right answers, by its key in the scores of a test set."""

SIZES = ("items", "text_characters", "sentences")
"""Keys of scores that hold sizes of a test set, which do not depend on the model. Earlier versions kept no
`text_characters`; `characters` are those after the first token."""


@dataclass(frozen=True)
class KeptAnswers:
    """Answers that a run has given to a test set."""

    targets: Sequence[Any]
    right: Sequence[float]
    """1 for each right answer, 0 for each wrong one."""
    items: Sequence[int] | None
    """Number of the item of each answer. None: each answer is to an item of its own."""


class ComparedConfig(Protocol):
    """The configuration of a run, as a comparison reads it."""

    @property
    def metrics(self) -> Sequence[Metric]: ...

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return plain values."""


@dataclass(frozen=True)
class ComparedRun:
    """A run of a comparison."""

    folder: Path
    name: str
    """Shortest end of the folder's path that differs from those of the others."""
    history: TrainingHistory
    scores: Mapping[str, Mapping[str, float | None]]
    """Scores by test set and metric. None: not known, as the perplexity of pairs longer than the model."""
    accuracy_from_first: Mapping[str, Difference]
    """Differences from the first run's share of right answers by test set, where both keep their answers. Empty for the
    first run."""
    settings: Sequence[str]
    """Settings that differ from those of the first run."""


@dataclass(frozen=True)
class RunComparison:
    """Runs, each compared with the first. Implements `tasks.base.Report`."""

    metrics: Sequence[Metric]
    sets: Sequence[str]
    """Test sets that are the same for all runs."""
    runs: Sequence[ComparedRun]
    tested: str
    """Name of the score that is tested: the share of right answers."""
    left_out: Sequence[str]
    """Differences of the common test sets that are not compared, a line for each set."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        return {
            "metrics": [asdict(one) for one in self.metrics],
            "tested": self.tested if any(run.accuracy_from_first for run in self.runs) else None,
            "left_out": list(self.left_out),
            "runs": [
                {
                    "run": str(run.folder),
                    **run.history.as_dict(),
                    "tests": {
                        name: {**run.scores[name], "accuracy_from_first": _plain(run.accuracy_from_first.get(name))}
                        for name in self.sets
                    },
                    "settings": list(run.settings),
                }
                for run in self.runs
            ],
        }

    def lines(self) -> list[str]:
        """Return lines for people."""
        lines: list[str] = []
        for name in self.sets:
            lines += ["", *self._table(name).lines()]
        if self.left_out:
            lines += ["", *self._not_compared()]
        for run in self.runs[1:]:
            settings = [f"  {one}" for one in run.settings] or ["  none"]
            lines += ["", f"settings of {run.name} that differ from {self.runs[0].name}", *settings]
        return lines[1:]

    def chapters(self) -> list[Chapter]:
        """Return chapters of a page: tables and differences, curves of validations, settings."""
        chapters = [
            Chapter(title=f"Test set: {name}", notes=[], parts=[self._table(name), *self._differences(name)])
            for name in self.sets
        ]
        if self.left_out:
            chapters.append(Chapter(title="Test sets left out", notes=self.left_out, parts=[]))
        chapters.append(Chapter(title="Validation during training", notes=[], parts=self._curves()))
        rows = [[run.name, "\n".join(run.settings) or "none"] for run in self.runs[1:]]
        table = Table(f"Settings that differ from {self.runs[0].name}", ["run", "settings"], rows, prose=True)
        chapters.append(Chapter(title="Settings", notes=[], parts=[table]))
        return chapters

    def page(self) -> str:
        """Return a self-contained HTML page."""
        return report_page(
            self.chapters(),
            title=f"{len(self.runs)} runs compared",
            summary=[("compared with", self.runs[0].name)],
        )

    def _repr_html_(self) -> str:
        return tables_in_notebook([self._table(name) for name in self.sets], self._not_compared())

    def _not_compared(self) -> list[str]:
        return [f"not compared: {one}" for one in self.left_out]

    def _table(self, name: str) -> Table:
        scores = [run.scores[name] for run in self.runs]
        shown = [metric for metric in self.metrics if all(one.get(metric.name) is not None for one in scores)]
        tested = any(run.accuracy_from_first.get(name) for run in self.runs)
        heads = [
            "run",
            *(f"{_wrapped(one.name)}\n{'higher' if one.higher_is_better else 'lower'} wins" for one in shown),
        ]
        minus = "\n".join([*wrap(f"{self.tested} minus", COLUMN_WIDTH + 1), self.runs[0].name])
        heads += [minus, "95 %\ninterval", "p"] if tested else []
        rows = []
        for run, own in zip(self.runs, scores, strict=True):
            cells = [f"{own[metric.name]:.4f}" for metric in shown]
            rows.append([run.name, *cells, *(self._tested(run, name) if tested else []), *run.history.cost_cells()])
        return Table(name, [*heads, *COSTS], rows)

    def _tested(self, run: ComparedRun, name: str) -> list[str]:
        if (found := run.accuracy_from_first.get(name)) is None:
            return [NOTHING] * 3
        low, high = found.interval
        return [f"{found.difference:+.4f}", f"{low:+.4f} to {high:+.4f}", f"{found.p:.3f}"]

    def _differences(self, name: str) -> list[str]:
        """Return a chart of the tested differences, or none if nothing was tested."""
        tested = [(number, run, run.accuracy_from_first.get(name)) for number, run in enumerate(self.runs)]
        rows = [Estimate(run.name, one.difference, one.interval, number) for number, run, one in tested if one]
        if not rows:
            return []
        chart = interval_chart(
            [Estimates(f"Difference from {self.runs[0].name}", rows)],
            title=f"Difference in {self.tested} on {name}, with intervals; the numbers are in the table",
            axis_label=f"difference in {self.tested}",
            decimals=4,
            differences=True,
        )
        return [chart]

    def _curves(self) -> list[str]:
        charts = []
        for metric in self.metrics:
            curves = []
            for run in self.runs:
                values = [(one.minutes, one.scores[metric.name]) for one in run.history.validations]
                if points := [(minutes, value) for minutes, value in values if value is not None]:
                    curves.append(Curve(run.name, points))
            label = f"validation {metric.name}{', ' + metric.unit if metric.unit else ''}"
            if curves:
                charts.append(line_chart(curves, title=f"{label}, over minutes", x_label="minutes", y_label=label))
        return charts


def compare_runs(runs: Mapping[Path, tuple[ComparedConfig, Mapping[str, Any]]]) -> RunComparison:
    """Compare run folders, given the configuration and the plan of each. Test sets that differ between runs, such as
    random validation sets of other seeds, are left out and named.

    Raises:
        RunError: a run was not evaluated or not trained, or no test set is the same for all.
    """
    (first, _), *_ = runs.values()
    scores = {folder: _evaluated(folder) for folder in runs}
    answers, left_out = _shared(scores)
    sets, of_first = list(answers), next(iter(scores.values()))
    tested_score = next((one for key, one in TESTED.items() if any(key in of_first[name] for name in sets)), "accuracy")
    metrics = [metric.name for metric in first.metrics]
    compared = []
    for number, (folder, name) in enumerate(zip(runs, names_from_where_paths_part(list(runs)), strict=True)):
        config, plan = runs[folder]
        tested = {}
        for one in sets if number else ():
            (before, now) = answers[one][0], answers[one][number]
            if before is not None and now is not None:
                tested[one] = paired_bootstrap(before.right, now.right, before.items)
        settings = differences(first.model_dump(mode="json"), config.model_dump(mode="json"), but=UNCOMPARED)
        history = read_history(folder, plan, metrics)
        kept = {one: {key: scores[folder][one][key] for key in metrics if key in scores[folder][one]} for one in sets}
        compared.append(ComparedRun(folder, name, history, kept, tested, settings))
    return RunComparison(first.metrics, sets, compared, tested_score, left_out)


def _wrapped(name: str) -> str:
    """Return the name of a metric in lines of a column's width, broken after underscores."""
    return "\n".join(line.replace(" ", "") for line in wrap(name.replace("_", "_ "), COLUMN_WIDTH))


def _plain(found: Difference | None) -> dict[str, Any] | None:
    return None if found is None else asdict(found)


def _evaluated(folder: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for path in sorted((folder / EVALUATION).glob("*.json")):
        try:
            found[path.name.removesuffix(".json")] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise RunError(f"{path} is damaged ({error}): evaluate {folder} anew") from error
    require_current(folder, list(found))
    return found


def _shared(scores: Mapping[Path, Mapping[str, Any]]) -> tuple[dict[str, list[KeptAnswers | None]], list[str]]:
    """Return the answers of all runs by test set that is the same for all, and the differences of other common sets.

    Raises RunError if no set is the same for all, and for answers that `_read_answers` refuses.
    """
    first, *others = scores.values()
    common = [name for name in first if all(name in other for other in others)]
    if not common:
        known = "; ".join(f"{run} on {', '.join(sets)}" for run, sets in scores.items())
        raise RunError(f"no test set is common to all runs ({known}): evaluate all on one: regardant evaluate --data")
    answers: dict[str, list[KeptAnswers | None]] = {}
    left_out = []
    for name in common:
        of_set = {folder: sets[name] for folder, sets in scores.items()}
        if difference := _difference_in_size(name, of_set):
            left_out.append(difference)
            continue
        read = {folder: _read_answers(folder, name, one) for folder, one in of_set.items()}
        if difference := _difference_in_targets(name, read):
            left_out.append(difference)
        else:
            answers[name] = list(read.values())
    if not answers:
        raise RunError(f"{'; '.join(left_out)}: compare runs that were evaluated on the same test set")
    return answers, left_out


def _difference_in_size(name: str, scores: Mapping[Path, Mapping[str, Any]]) -> str:
    """Return the first size of a test set that differs between two runs, in words. Empty: none does."""
    for size in SIZES:
        known = {folder: one[size] for folder, one in scores.items() if size in one}
        for (start, expected), (folder, given) in pairwise(known.items()):
            if given != expected:
                return f"{name} has {expected} {size} in {start} and {given} in {folder}"
    return ""


def _read_answers(folder: Path, name: str, scores: Mapping[str, Any]) -> KeptAnswers | None:
    """Return the answers to a test set. None if none are kept.

    Raises RunError for several answers to an item without its number, which earlier versions did not keep.
    """
    path = folder / EVALUATION / f"{name}{PREDICTIONS}"
    if not path.is_file():
        return None
    try:
        # A line ends at a line feed and nowhere else: a text may hold U+2028.
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        right = [float(one.get("right", one["answer"] == one["target"])) for one in lines]
        items = [int(one["item"]) for one in lines] if lines and "item" in lines[0] else None
        answers = KeptAnswers([one["target"] for one in lines], right, items)
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} is damaged ({error}): evaluate {folder} anew") from error
    # Earlier versions answered a matched item once for each of its pairs, of which `items` is the number.
    if items is None and len(lines) > scores.get("first_items", scores.get("items", len(lines))):
        raise RunError(f"{path} has no numbers of items, since an earlier version wrote it: evaluate {folder} anew")
    return answers


def _difference_in_targets(name: str, answers: Mapping[Path, KeptAnswers | None]) -> str:
    """Return the first run whose targets of a test set differ from those of the first run, in words. Empty: none does.

    Those of taggers differ as well if their maximum lengths do: words beyond the length have no answer.
    """
    (first, expected), *others = answers.items()
    for folder, one in others:
        if expected is None or one is None:
            continue
        if (one.targets, one.items) != (expected.targets, expected.items):
            return f"{name} of {folder} has other targets than that of {first}"
    return ""
