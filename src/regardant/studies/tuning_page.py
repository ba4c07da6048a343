"""A sweep as lines to print and as an offline page."""

import math

from regardant.pictures import Chapter, Curve, Table, line_chart, report_page
from regardant.studies.tuning import Training, Tuned

WIDTHS = (3, 14, 8, 5, 10)
HEADS = ("no.", "stage", "minutes", "seed", "score")


def lines(tuned: Tuned) -> list[str]:
    """Return the lines to print."""
    found = ["  ".join([*(head.ljust(width) for head, width in zip(HEADS, WIDTHS, strict=True)), "settings"])]
    for one in tuned.trainings:
        cells = [cell.ljust(width) for cell, width in zip(_cells(one), WIDTHS, strict=True)]
        found.append("  ".join([*cells, " ".join(one.settings)]).rstrip())
    found += [f"left out: {reason}" for reason in tuned.skipped]
    settings = " ".join(f"--set {one}" for one in tuned.settings)
    return [*found, f"best settings   {settings or 'those of the recipe'}", f"verdict         {tuned.verdict()}"]


def page(tuned: Tuned, recipe: str) -> str:
    """Return an offline HTML page."""
    rows = [[*_cells(one), " ".join(one.settings)] for one in tuned.trainings]
    name = tuned.metric.name
    drawn = [one for one in tuned.trainings if math.isfinite(one.score)]
    whole = [(float(one.number), one.score) for one in drawn if one.minutes == _longest(tuned)]
    short = [(float(one.number), one.score) for one in drawn if one.minutes != _longest(tuned)]
    curves = [Curve(title, points) for title, points in (("whole length", whole), ("a third of it", short)) if points]
    chart = line_chart(curves, title=f"{name} by training", x_label="training no.", y_label=name)
    notes = [tuned.verdict(), " ".join(f"--set {one}" for one in tuned.settings), *tuned.skipped]
    table = Table("Trainings", (*HEADS, "settings"), rows)
    return report_page(
        [Chapter("Result", notes, [chart]), Chapter("Trainings", [], [table])],
        title=f"Sweep of {recipe}",
        summary=[("metric", name), ("trainings", str(len(rows)))],
    )


def _longest(tuned: Tuned) -> float:
    return max(one.minutes for one in tuned.trainings)


def _cells(one: Training) -> list[str]:
    score = f"{one.score:.4g}" if math.isfinite(one.score) else "failed"
    return [str(one.number), one.stage, f"{one.minutes:.2f}", str(one.seed), score]
