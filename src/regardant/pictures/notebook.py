"""Elements of a notebook's output: small tables whose text is escaped, and pages in frames as high as their content."""

from collections.abc import Iterable, Sequence
from typing import Any

from regardant.pictures.markup import escaped
from regardant.pictures.table import Table

STYLE = """
.regardant { max-width: 60rem; }
.regardant table { margin: 0.4rem 0; }
.regardant th, .regardant td { text-align: left; vertical-align: top; }
.regardant thead th { white-space: pre; }
.regardant .numbers td { text-align: right; white-space: nowrap; }
.regardant caption { caption-side: top; text-align: left; white-space: nowrap; }
"""
"""CSS rules, for these elements only: all outputs of a notebook are one document."""

FIRST_HEIGHT = 480
"""Height of a framed page in pixels, until its script has measured the content."""

MOST_SHOWN = 20
"""Largest number of answers shown of a list."""


class Answers(list[Any]):
    """A list of answers, which a notebook shows one below the other."""

    def _repr_html_(self) -> str:
        more = len(self) - MOST_SHOWN
        shown = "".join(one._repr_html_() for one in self[:MOST_SHOWN])
        return shown + (f"<p>and {more:,} more</p>" if more > 0 else "")


def facts(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table with a row for each (name, value)."""
    lines = "".join(f'<tr><th scope="row">{escaped(name)}</th><td>{escaped(value)}</td></tr>' for name, value in rows)
    return _element(f"<table><caption>{escaped(caption)}</caption><tbody>{lines}</tbody></table>")


def tables_in_notebook(tables: Sequence[Table], notes: Sequence[str] = ()) -> str:
    """Return tables one below the other, all but the first folded, then notes."""
    first, *others = (f'<div class="numbers">{table.html()}</div>' for table in tables)
    folded = "".join(
        f"<details><summary>{escaped(table.caption)}</summary>{drawn}</details>"
        for table, drawn in zip(tables[1:], others, strict=True)
    )
    return _element(first + folded + "".join(f"<p>{escaped(note)}</p>" for note in notes))


def in_notebook(page: str) -> str:
    """Return a page in a frame of its own. The script of an attention page makes the frame as high as the page."""
    return f'<iframe srcdoc="{escaped(page)}" style="width: 100%; height: {FIRST_HEIGHT}px; border: 0"></iframe>'


def _element(content: str) -> str:
    return f'<div class="regardant"><style>{STYLE}</style>{content}</div>'
