"""The result of a trial: scores of both arms over seeds, their spread, and a test of the difference."""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regardant.config.run_files import EVALUATION
from regardant.evaluation.paired import Difference, paired_over_seeds
from regardant.pictures import Chapter, Table, report_page
from regardant.run.folder import Record
from regardant.tasks.base import Report
from regardant.tasks.training_history import read_history

NOT_TESTED = "–"
"""Table cell of a difference that cannot be tested."""


@dataclass(frozen=True)
class Score:
    """Score of a run by which arms are compared."""

    name: str
    higher_is_better: bool
    decimals: int

    def text(self, value: float, sign: str = "") -> str:
        """Format a value with the score's number of decimals."""
        return f"{value:{sign},.{self.decimals}f}"


SCORES: Mapping[Score, Callable[[Mapping[str, Any]], float]] = {
    Score("BLEU, unseen sentences", True, 2): lambda found: found["test"]["bleu"],
    Score("BLEU, held-out combinations", True, 2): lambda found: found["heldout"]["bleu"],
    Score("perplexity, unseen sentences", False, 4): lambda found: found["test"]["perplexity"],
    Score("alignment error rate", False, 4): lambda found: found["test"]["alignment_error_rate"],
    Score("target tokens trained a second", True, 0): lambda found: found["tokens_per_second"],
}
"""Scores in the order of the table, with the function that reads each from the evaluations of a run. The verdict is on
the first."""


@dataclass(frozen=True)
class Arm:
    """Runs that differ in the seed alone."""

    name: str
    scores: Mapping[Score, Sequence[float]]
    """Values by seed."""

    @classmethod
    def read(cls, name: str, runs: Sequence[Path]) -> "Arm":
        """Return the scores of evaluated runs."""
        read = [_read(run) for run in runs]
        return cls(name, {score: [float(value(found)) for found in read] for score, value in SCORES.items()})

    def cell(self, score: Score) -> str:
        """Return the mean, and the standard deviation over seeds if there are several."""
        values = self.scores[score]
        mean = score.text(statistics.fmean(values))
        return f"{mean} ± {score.text(statistics.stdev(values))}" if len(values) > 1 else mean


def _read(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = {
        file.stem: json.loads(file.read_text(encoding="utf-8")) for file in (run / EVALUATION).glob("*.json")
    }
    return found | {"tokens_per_second": read_history(run, Record.read(run).plan, ("bleu",)).tokens_per_second}


@dataclass(frozen=True)
class TrialReport:
    """Two arms over the same seeds, and the comparison of the two runs of each seed. Implements `tasks.base.Report`."""

    arms: Sequence[Arm]
    """Baseline first."""
    by_seed: Sequence[Report]

    def difference(self, score: Score) -> Difference | None:
        """Return the difference of the arms over seeds. None if it cannot be tested."""
        baseline, other = (arm.scores[score] for arm in self.arms)
        return paired_over_seeds(baseline, other)

    def verdict(self) -> str:
        """Return the result in one sentence."""
        score, seeds = next(iter(SCORES)), len(self.by_seed)
        baseline, other = self.arms
        distance = statistics.fmean(other.scores[score]) - statistics.fmean(baseline.scores[score])
        difference = f"{other.name} differs from {baseline.name} by {score.text(distance, '+')} {score.name}"
        if (found := self.difference(score)) is None:
            return (
                f"{difference}; {seeds} seed{'s' if seeds > 1 else ''} cannot tell the difference from chance: "
                "give more --seeds"
            )
        low, high = (score.text(bound, "+") for bound in found.interval)
        verdict = found.verdict(higher_is_better=score.higher_is_better)
        return f"{difference} (95 % interval {low} to {high}, p = {found.p:.2g}, {seeds} seeds): {verdict}"

    def lines(self) -> list[str]:
        """Return the lines to print."""
        return [*self._table().lines(), "", self.verdict()]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        scores = {
            score.name: {
                **{arm.name: list(arm.scores[score]) for arm in self.arms},
                "difference": None if (found := self.difference(score)) is None else asdict(found),
            }
            for score in SCORES
        }
        return {"verdict": self.verdict(), "scores": scores, "by_seed": [one.as_dict() for one in self.by_seed]}

    def chapters(self) -> list[Chapter]:
        """Return chapters of a page: all seeds together, then each seed."""
        notes = [
            self.verdict() + ".",
            "Mean ± standard deviation over seeds. Both runs of a seed have the same text, order of batches and number "
            "of updates; the interval and p are of a paired t-test over seeds.",
        ]
        every = Chapter(title=f"{len(self.by_seed)} seeds", notes=notes, parts=[self._table()])
        of_seeds = [
            Chapter(f"Seed {seed}. {one.title}", one.notes, one.parts, one.folded, one.marks)
            for seed, report in enumerate(self.by_seed, 1)
            for one in report.chapters()
        ]
        return [every, *of_seeds]

    def page(self) -> str:
        """Return an offline page."""
        baseline, other = self.arms
        return report_page(
            self.chapters(),
            title=f"{other.name} compared with {baseline.name}",
            summary=[("seeds", str(len(self.by_seed)))],
        )

    def _table(self) -> Table:
        heads = ["score", *(arm.name for arm in self.arms), "difference", "95 %\ninterval", "p"]
        return Table("Scores over seeds", heads, [self._row(score) for score in SCORES])

    def _row(self, score: Score) -> list[str]:
        wins = "higher" if score.higher_is_better else "lower"
        cells = [f"{score.name} ({wins} wins)", *(arm.cell(score) for arm in self.arms)]
        baseline, other = (statistics.fmean(arm.scores[score]) for arm in self.arms)
        if (found := self.difference(score)) is None:
            return [*cells, score.text(other - baseline, "+"), NOT_TESTED, NOT_TESTED]
        low, high = (score.text(bound, "+") for bound in found.interval)
        return [*cells, score.text(found.difference, "+"), f"{low} to {high}", f"{found.p:.3f}"]
