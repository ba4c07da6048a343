"""A page with the claims of the lectures, their true values and the values measured here."""

from collections.abc import Iterator, Mapping
from typing import Any

from regardant.checks.verify import VerificationReport, verify
from regardant.checks.verify.check import Checked

NOT_GIVEN = "–"
"""Cell of a figure that a lecture does not give."""

CITED = "cited"
"""Cell of a claim that a source decides, in place of a measurement."""


def page(report: VerificationReport | None = None) -> str:
    """Return the text of the page. By default all claims are measured now."""
    return "\n".join(_lines(verify() if report is None else report)) + "\n"


def _lines(report: VerificationReport) -> Iterator[str]:
    agree = len(report.measured) - len(report.failed)
    cited = len(report.checked) - len(report.measured)
    by_source = f"; {cited} more {'is' if cited == 1 else 'are'} decided by a source" if cited else ""
    yield "# Claims of the lectures"
    yield ""
    yield (
        "Every claim of the lectures on attention, and what this project measures when this page is built: "
        f"the measured values of {agree} of {len(report.measured)} claims agree with the true ones{by_source}. "
        "`regardant verify` measures them on your machine, `regardant verify --page claims.html` shows all digits, and "
        "`regardant verify --mine MODULE:FUNCTION` checks attention of your own."
    )
    yield ""
    yield "| verdict | claims |"
    yield "|---|---|"
    yield from (f"| {verdict} | {count} |" for verdict, count in report.verdicts().most_common())
    for source in dict.fromkeys(one.claim.source for one in report.checked):
        yield from ["", f"## {source}", "", "| claim | lecture | true | measured | verdict |", "|---|---|---|---|---|"]
        yield from (_row(one) for one in report.checked if one.claim.source == source)


def _row(one: Checked) -> str:
    found, claim = one.as_dict(), one.claim
    notes = [claim.note, f"Source: {one.evidence}" if one.evidence else ""]
    note = "".join(f"<br>{_cell(text)}" for text in notes if text)
    measured = CITED if one.evidence else _cell(found["measured"])
    verdict = claim.verdict if one.ok else f"{claim.verdict}; **does not agree**"
    title = f"{claim.id} {_cell(claim.title)}"
    return f"| {title}{note} | {_cell(claim.lecture)} | {_cell(claim.true)} | {measured} | {verdict} |"


def _cell(value: Any) -> str:
    """Return a value as the text of a cell: figures by name and rows of a table in lines of their own."""
    if value is None:
        return NOT_GIVEN
    if isinstance(value, Mapping):
        return "<br>".join(f"{name}: {_cell(one)}" if name else _cell(one) for name, one in value.items())
    if isinstance(value, list | tuple):
        nested = any(isinstance(one, list | tuple) for one in value)
        return ("<br>" if nested else " ").join(map(_cell, value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value).replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("\n", " ")
