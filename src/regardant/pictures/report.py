"""One HTML file of tables and charts: no script, no network, nothing beside it.

A chart is for the eye; the same numbers stand in a table for everybody else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from string import Template

from regardant.pictures.markup import asset, digest, escaped, summary_list
from regardant.pictures.table import Table


@dataclass(frozen=True)
class Chapter:
    """A heading and what stands under it."""

    title: str

    notes: Sequence[str]
    """Remarks, a line each."""

    parts: Sequence[Table | str]
    """Tables, and drawings as SVG elements."""

    folded: Table | None = None
    """The numbers of drawings, shown on demand."""

    marks: Sequence[tuple[str, bool]] = ()
    """Words beside the title, each with whether it is a warning."""


def report_page(chapters: Sequence[Chapter], *, title: str, summary: Sequence[tuple[str, str]] = ()) -> str:
    """Return the whole page. summary: (label, value) under the title."""
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
    """Return a drawing that keys can scroll where it is wider than the page."""
    return f'<div class="scroll" role="group" tabindex="0" aria-label="Chart, scrolls if wide">{drawing}</div>'
