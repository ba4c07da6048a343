"""A diagnosis as lines to print, and as an offline page with the curves."""

from collections.abc import Mapping

from regardant.checks.doctor import Diagnosis
from regardant.checks.doctor.case import Seen
from regardant.pictures import Chapter, Table, report_page


def summary(diagnosis: Diagnosis) -> list[str]:
    """Return lines with the findings, then all checks with their measurements, then checks that do not apply."""
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
    """Return an offline HTML page."""
    count = len(diagnosis.findings)
    counts = [
        ("findings", str(count)),
        ("checked", str(len(diagnosis.seen))),
        ("left out", str(len(diagnosis.left_out))),
    ]
    chapters = [
        _chapter(name, seen) for name, seen in sorted(diagnosis.seen.items(), key=_passed) if _has_details(seen)
    ]
    plain = {name: seen.measured for name, seen in diagnosis.seen.items() if not _has_details(seen)}
    for title, rows in (("Passed", plain), ("Left out", diagnosis.left_out)):
        if rows:
            chapters.append(Chapter(title, [], [Table(title, ("check", ""), list(rows.items()), prose=True)]))
    return report_page(chapters, title=f"{run}: {'nothing found' if not count else _counted(count)}", summary=counts)


def _has_details(seen: Seen) -> bool:
    """Return whether a check has findings or pictures beside its line."""
    return bool(seen.findings or seen.pictures)


def _passed(item: tuple[str, Seen]) -> bool:
    """Return whether a check passed: the key that sorts checks with findings first."""
    return not item[1].findings


def _chapter(name: str, seen: Seen) -> Chapter:
    rows = [(finding.what, finding.evidence, finding.cure) for finding in seen.findings]
    table = [Table(name.capitalize(), ("finding", "evidence", "cure"), rows, prose=True)] if rows else []
    mark = (_counted(len(rows)), True) if rows else ("passed", False)
    return Chapter(name.capitalize(), [seen.measured], [*table, *seen.pictures], marks=[mark])


def _counted(count: int) -> str:
    return f"{count} finding{'s' if count > 1 else ''}"


def _marked(seen: Seen) -> str:
    return f"{seen.measured}  <- {_counted(len(seen.findings))}" if seen.findings else seen.measured


def _listed(items: Mapping[str, str]) -> list[str]:
    width = max(map(len, items), default=0)
    return [f"  {name.ljust(width)}  {text}" for name, text in items.items()]
