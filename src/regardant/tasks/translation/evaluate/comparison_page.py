"""A comparison for people: a table for each test set, and a page that adds intervals and curves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from regardant.evaluation.comparison import ComparedTranslation
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
from regardant.tasks.training_history import COSTS, Validation
from regardant.tasks.translation.evaluate.comparison import Comparison, SharedSet

NOTHING = "–"
"""Cell of the first run, which has no difference from itself."""


@dataclass(frozen=True)
class ComparisonReport:
    """A comparison as lines, page and plain values. Implements `tasks.base.Report`."""

    comparison: Comparison
    settings: Sequence[Sequence[str]] = ()
    """Settings of each run after the first that differ from those of the first. Empty: not known."""

    def lines(self) -> list[str]:
        return summary(self.comparison)

    def chapters(self) -> list[Chapter]:
        found = chapters(self.comparison)
        if self.settings:
            first, *others = (run.name for run in self.comparison.runs)
            rows = [[name, "\n".join(one) or "none"] for name, one in zip(others, self.settings, strict=True)]
            table = Table(f"Settings that differ from {first}", ["run", "settings"], rows, prose=True)
            found.append(Chapter(title="Settings", notes=[], parts=[table]))
        return found

    def page(self) -> str:
        return report_page(
            self.chapters(),
            title=f"{len(self.comparison.runs)} runs compared",
            summary=[("compared with", self.comparison.runs[0].name)],
        )

    def as_dict(self) -> dict[str, Any]:
        return self.comparison.as_dict()

    def _repr_html_(self) -> str:
        sets = self.comparison.sets
        notes = dict.fromkeys(note for one in sets for note in _notes(self.comparison, one))
        return tables_in_notebook([_table(self.comparison, one) for one in sets], list(notes))


def summary(comparison: Comparison) -> list[str]:
    """Return lines for people."""
    lines = []
    for one in comparison.sets:
        lines += ["", *_table(comparison, one).lines(), *(f"  {note}" for note in _notes(comparison, one))]
    return lines[1:]


def chapters(comparison: Comparison) -> list[Chapter]:
    """Return the chapters of a page: tables, intervals of differences and of BLEU by length, curves of validations."""
    tests = [
        Chapter(
            title=f"Test set: {one.name}",
            notes=_notes(comparison, one),
            parts=[_table(comparison, one), _differences(comparison, one), _scores_by_length(comparison, one)],
            folded=_interval_table(comparison, one),
        )
        for one in comparison.sets
    ]
    return [*tests, _validations(comparison)]


def _table(comparison: Comparison, tested: SharedSet) -> Table:
    first = comparison.runs[0]
    quarters = first.tests[tested.name].by_length
    heads = ["run", "BLEU", "chrF", f"BLEU minus\n{first.name}", "95 %\ninterval", "p"]
    heads += [f"{_span(quarter.words)}\nwords" for quarter in quarters]
    return Table(
        caption=f"{tested.name}: {tested.sentences:,} sentences; columns of words: BLEU by length of the source",
        heads=[*heads, *COSTS],
        rows=[[run.name, *_scores(run.tests[tested.name]), *run.training.cost_cells()] for run in comparison.runs],
    )


def _scores(scores: ComparedTranslation) -> list[str]:
    cells = [f"{scores.bleu:.2f}", f"{scores.chrf:.2f}"]
    if (against := scores.against_first) is None:
        cells += [NOTHING] * 3
    else:
        low, high = against.interval
        cells += [f"{against.difference:+.2f}", f"{low:+.2f} to {high:+.2f}", f"{against.p:.3f}"]
    return cells + [f"{quarter.bleu:.2f}" for quarter in scores.by_length]


def _notes(comparison: Comparison, tested: SharedSet) -> list[str]:
    notes = [
        *_verdicts(comparison, tested),
        f"BLEU {tested.signatures.bleu}",
        f"chrF {tested.signatures.chrf}",
        f"interval and two-sided p: paired bootstrap of the difference in BLEU from {comparison.runs[0].name}; judge a "
        "difference by this interval, not by those of single runs",
    ]
    if len(set(tested.decoding.values())) > 1:
        ways = "; ".join(f"{run} {settings}" for run, settings in tested.decoding.items())
        notes.append(f"translated with different settings: {ways}")
    return notes


def _verdicts(comparison: Comparison, tested: SharedSet) -> list[str]:
    """Return a sentence for each run after the first."""
    first, *others = comparison.runs
    found = [(run.name, run.tests[tested.name].against_first) for run in others]
    return [
        f"{name} differs from {first.name} by {one.difference:+.2f} BLEU (p = {one.p:.2g}): {one.verdict()}"
        for name, one in found
        if one is not None
    ]


def _differences(comparison: Comparison, tested: SharedSet) -> str:
    """Draw the paired difference of each run from the first."""
    first = comparison.runs[0].name
    found = [(number, run.name, run.tests[tested.name].against_first) for number, run in enumerate(comparison.runs)]
    rows = [Estimate(name, one.difference, one.interval, number) for number, name, one in found if one is not None]
    return interval_chart(
        [Estimates(f"Difference from {first}", rows)],
        title=f"Difference in BLEU from {first} on {tested.name}, with intervals; the numbers are in the table",
        axis_label="difference in BLEU",
        differences=True,
    )


def _scores_by_length(comparison: Comparison, tested: SharedSet) -> str:
    """Draw the BLEU of each run with its own interval, of all sentences and by length of the source."""
    scores = [(run.name, run.tests[tested.name]) for run in comparison.runs]
    every = [Estimate(name, one.bleu, one.interval, number) for number, (name, one) in enumerate(scores)]
    groups = [Estimates(f"BLEU of all {tested.sentences:,} sentences", every)]
    for place, quarter in enumerate(comparison.runs[0].tests[tested.name].by_length):
        parts = [(name, one.by_length[place]) for name, one in scores]
        rows = [Estimate(name, part.bleu, part.interval, number) for number, (name, part) in enumerate(parts)]
        groups.append(Estimates(f"{_span(quarter.words)} words, {quarter.sentences:,} sentences", rows))
    title = f"BLEU on {tested.name} by length of the source, with intervals; the numbers are in the table below"
    return interval_chart(groups, title=title, axis_label="BLEU", highest=100)


def _interval_table(comparison: Comparison, tested: SharedSet) -> Table:
    quarters = comparison.runs[0].tests[tested.name].by_length
    rows = []
    for run in comparison.runs:
        scores = run.tests[tested.name]
        cells = [(scores.bleu, scores.interval), *((part.bleu, part.interval) for part in scores.by_length)]
        rows.append([run.name, *(f"{bleu:.2f} ({low:.2f} to {high:.2f})" for bleu, (low, high) in cells)])
    heads = ["run", "all", *(f"{_span(quarter.words)} words" for quarter in quarters)]
    return Table(f"{tested.name}: BLEU with 95 % bootstrap intervals", heads, rows)


def _validations(comparison: Comparison) -> Chapter:
    rows = [
        [run.name, f"{one.minutes:.1f}", _number(one.scores["loss"]), _number(one.scores["bleu"])]
        for run in comparison.runs
        for one in run.training.validations
    ]
    return Chapter(
        title="Validation during training",
        parts=[
            *_curves(comparison, "validation BLEU, greedy", lambda one: one.scores["bleu"]),
            *_curves(comparison, "validation loss, nats a token", lambda one: one.scores["loss"]),
        ],
        notes=["Losses are comparable only between runs with the same vocabulary."],
        folded=Table("Validations", ["run", "minutes", "loss", "BLEU"], rows),
    )


def _curves(comparison: Comparison, label: str, number: Callable[[Validation], float | None]) -> list[str]:
    """Return one chart, or none if no run has a number."""
    curves = []
    for run in comparison.runs:
        points = [(one.minutes, value) for one in run.training.validations if (value := number(one)) is not None]
        if points:
            curves.append(Curve(run.name, points))
    title = f"{label}, over minutes; the numbers are in the table below"
    return [line_chart(curves, title=title, x_label="minutes", y_label=label)] if curves else []


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def _span(words: tuple[int, int]) -> str:
    fewest, most = words
    return f"{fewest}" if fewest == most else f"{fewest}-{most}"
