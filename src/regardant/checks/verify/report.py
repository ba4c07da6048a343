"""Results of the checks as a table to print, and as an offline page with all digits and reasons."""

from collections.abc import Iterator, Sequence

from regardant.checks.verify import VerificationReport
from regardant.checks.verify.check import Checked, Claim, Figure, named
from regardant.pictures import Chapter, Table, report_page

COLUMNS = (("id", 4), ("claim", 38), ("lecture", 18), ("true", 18), ("measured", 18), ("verdict", 10), ("ok", 2))
"""Columns of the printed table, with their widths."""


def summary(report: VerificationReport) -> list[str]:
    """Return one line per claim, the counts of verdicts, and the checks that fail with their numbers."""
    lines = [_line([name for name, _ in COLUMNS]), "  ".join("-" * width for _, width in COLUMNS)]
    lines += [_line(_cells(one)) for one in report.checked]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.verdicts().most_common())
    whose = "measured" if report.mine is None else f"computed by {report.mine}"
    lines += ["", f"{len(report.checked)} claims of the lectures: {counts}"]
    agree = len(report.measured) - len(report.failed)
    lines.append(
        "partly: right only in part · unstated: the lecture gives no value · experiment: only training can decide"
    )
    lines.append(f"the values {whose} for {agree} of {len(report.measured)} claims agree with the true ones")
    if cited := len(report.checked) - len(report.measured):
        lines.append(f"{cited} are decided by a source, which --page names")
    for one in report.failed:
        lines += [f"{one.claim.id}  {one.claim.title}", *map(_complaint, (f for f in one.figures if not f.ok))]
    if report.left_out:
        lines.append(
            f"{', '.join(report.left_out)} left out: they need a parameter `mask`, True where a query may attend"
        )
    return lines


def page(report: VerificationReport) -> str:
    """Return an offline HTML page."""
    title = "Claims of the lectures" if report.mine is None else f"Claims checked with {report.mine}"
    agree = f"{len(report.measured) - len(report.failed)} of {len(report.measured)}"
    counts = [("agree", agree), *((verdict, str(count)) for verdict, count in report.verdicts().most_common())]
    return report_page([_chapter(one) for one in report.checked], title=title, summary=counts)


def _line(cells: list[str]) -> str:
    return "  ".join(_cut(cell, width).ljust(width) for cell, (_, width) in zip(cells, COLUMNS, strict=True)).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _cells(one: Checked) -> list[str]:
    """Return the cells of a check, with the first of its figures only."""
    claim = one.claim
    if not one.figures:
        return [claim.id, claim.title, _first_of_lecture(claim, ""), claim.note, "cited", claim.verdict, "ok"]
    first, *more = one.figures
    true = named(claim.true)[first.name]
    values = [true, first.shown()]
    return [
        claim.id,
        claim.title,
        _first_of_lecture(claim, first.name),
        *(f"{value} …" if more else value for value in values),
        claim.verdict,
        "ok" if one.ok else "NO",
    ]


def _first_of_lecture(claim: Claim, name: str) -> str:
    if claim.lecture is None:
        return "-"
    lecture = named(claim.lecture)
    return lecture[name] if name in lecture else next(iter(lecture.values()))


def _complaint(figure: Figure) -> str:
    name = figure.name or "value"
    true = "; ".join(" ".join(row) for row in figure.true)
    return f"      {name}: off by {figure.difference:.2g}\n        true      {true}\n        measured  {figure.shown()}"


def _chapter(one: Checked) -> Chapter:
    claim = one.claim
    title = f"{claim.id} {claim.title}"
    marks = [(claim.verdict, claim.verdict == "wrong"), *([] if one.ok else [("does not agree", True)])]
    notes = [claim.source, claim.note, *([f"Source: {one.evidence}"] if one.evidence else [])]
    table = Table(title, ("", "lecture", "true", "measured"), list(_rows(one)), prose=True)
    return Chapter(title, notes, [table], marks=marks)


def _rows(one: Checked) -> Iterator[Sequence[str]]:
    lecture = {} if one.claim.lecture is None else named(one.claim.lecture)
    true, figures = named(one.claim.true), {figure.name: figure for figure in one.figures}
    for name in dict.fromkeys([*(name for name in lecture if name not in true), *true]):
        measured = figures[name].shown() if name in figures else ""
        yield [name, *(_as_lines(text) for text in (lecture.get(name, ""), true.get(name, ""), measured))]


def _as_lines(text: str) -> str:
    """Return each row of a table as a line."""
    return text.replace("; ", "\n")
