"""A diagnosis for people: lines to print and an offline page with the curves."""

from collections.abc import Mapping

from regardant.checks.doctor import Diagnosis
from regardant.checks.doctor.case import Finding, Seen
from regardant.pictures import Chapter, Table, report_page


def told(diagnosis: Diagnosis) -> list[str]:
    """Findings first, then what was checked, then what was not."""
    lines = []
    for name, finding in diagnosis.findings:
        lines += [f"{finding.what}  ({name})", f"  evidence  {finding.evidence}", f"  cure      {finding.cure}", ""]
    if not diagnosis.findings:
        lines += ["nothing found", ""]
    lines.append("checked")
    lines += _listed({name: _marked(seen) for name, seen in diagnosis.seen.items()})
    if diagnosis.left_out:
        lines += ["", "left out", *_listed(diagnosis.left_out)]
    return lines


def page(diagnosis: Diagnosis, run: str) -> str:
    """The whole HTML page."""
    count = len(diagnosis.findings)
    summary = [
        ("findings", str(count)),
        ("checked", str(len(diagnosis.seen))),
        ("left out", str(len(diagnosis.left_out))),
    ]
    sick = {name: seen for name, seen in diagnosis.seen.items() if seen.findings}
    well = {name: seen for name, seen in diagnosis.seen.items() if not seen.findings}
    chapters = [_chapter(name, seen) for name, seen in {**sick, **well}.items()]
    if diagnosis.left_out:
        rows = list(diagnosis.left_out.items())
        chapters.append(
            Chapter("Left out", [], [Table("Checks that do not apply", ("check", "why"), rows, prose=True)])
        )
    return report_page(chapters, title=f"{run}: {'nothing found' if not count else _counted(count)}", summary=summary)


def _chapter(name: str, seen: Seen) -> Chapter:
    rows = [row for finding in seen.findings for row in _rows(finding)]
    table = [Table(f"Findings: {name}", ("", ""), rows, prose=True)] if rows else []
    mark = (_counted(len(seen.findings)), True) if rows else ("in order", False)
    return Chapter(name.capitalize(), [seen.measured], [*table, *seen.pictures], marks=[mark])


def _rows(finding: Finding) -> list[tuple[str, str]]:
    return [("finding", finding.what), ("evidence", finding.evidence), ("cure", finding.cure)]


def _counted(count: int) -> str:
    return f"{count} finding{'s' if count > 1 else ''}"


def _marked(seen: Seen) -> str:
    return f"{seen.measured}  <- {_counted(len(seen.findings))}" if seen.findings else seen.measured


def _listed(items: Mapping[str, str]) -> list[str]:
    width = max(map(len, items), default=0)
    return [f"  {name.ljust(width)}  {text}" for name, text in items.items()]
