"""Report of tables and charts as one HTML file: no script, no network, no other files.

The numbers of a chart are in a table too, for readers who cannot see the chart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from string import Template

from regardant.pictures.markup import asset, digest, escaped, summary_list
from regardant.pictures.table import Table


@dataclass(frozen=True)
class Chapter:
    """A section of a report under its heading."""

    title: str

    notes: Sequence[str]
    """Remarks, a line each."""

    parts: Sequence[Table | str]
    """Tables, and drawings as SVG elements."""

    folded: Table | None = None
    """The numbers of drawings, shown on demand."""

    marks: Sequence[tuple[str, bool]] = ()
    """(word, True if it is a warning) beside the title."""


def report_page(chapters: Sequence[Chapter], *, title: str, summary: Sequence[tuple[str, str]] = ()) -> str:
    """Return the whole page. `summary`: (label, value) pairs under the title."""
    style = "".join(map(asset, ("colours.css", "look.css", "report.css", "chart.css")))
    return Template(asset("report.html")).substitute(
        title=escaped(title),
        summary=summary_list(summary),
        style=style,
        style_hash=digest(style),
        body="".join(map(_chapter, chapters)),
    )


def _chapter(chapter: Chapter) -> str:
    notes = [f'<p class="note">{escaped(note)}</p>' for note in chapter.notes if note]
    marks = "".join(
        f'<span class="mark{" is-bad" if warns else ""}">{escaped(word)}</span>' for word, warns in chapter.marks
    )
    head = f'<div class="head"><h2>{escaped(chapter.title)}</h2>{marks}</div>'
    parts = [part.html() if isinstance(part, Table) else _scrolling(part) for part in chapter.parts]
    if chapter.folded is not None:
        parts.append(f"<details><summary>The numbers</summary>{chapter.folded.html()}</details>")
    return "\n".join([f"<section>\n{head}", *notes, *parts, "</section>\n"])


def _scrolling(drawing: str) -> str:
    """Return a drawing in a box that scrolls, by keyboard too, if it is wider than the page."""
    return f'<div class="scroll" role="group" tabindex="0" aria-label="Chart, scrolls if wide">{drawing}</div>'
