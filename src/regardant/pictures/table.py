"""A table of words and numbers: lines for a terminal, or an element of a page."""

from collections.abc import Sequence
from dataclasses import dataclass

from regardant.pictures.markup import escaped


@dataclass(frozen=True)
class Table:
    """Rows named by their first cell. Raises ValueError for a row with more or fewer cells than `heads`."""

    caption: str
    """Caption of the table. Screen readers read it on a page."""

    heads: Sequence[str]
    """Headings of the columns. A line feed breaks a heading in a terminal."""

    rows: Sequence[Sequence[str]]

    prose: bool = False
    """True if cells are text that a page wraps, at line feeds as well, rather than numbers."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.heads):
                raise ValueError(f"row {row[:1]} has {len(row)} cells under {len(self.heads)} heads; give one for each")

    def lines(self) -> list[str]:
        """Return the caption, the heads and the rows: the first column flush left, the others flush right."""
        stacked = [head.split("\n") for head in self.heads]
        depth = max(map(len, stacked))
        heads = list(zip(*([""] * (depth - len(head)) + head for head in stacked), strict=True))
        every = [*heads, *self.rows]
        widths = [max(len(row[column]) for row in every) for column in range(len(self.heads))]
        return [self.caption, *(_aligned(row, widths) for row in every)]

    def html(self) -> str:
        """Return an HTML table, accessible to screen readers, in a box that scrolls on a narrow page."""
        caption = escaped(self.caption)
        heads = "".join(f'<th scope="col">{escaped(head)}</th>' for head in self.heads)
        kind = ' class="prose"' if self.prose else ""
        rows = "\n".join(f"<tr>{_named(row)}</tr>" for row in self.rows)
        return (
            f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}"><table{kind}>'
            f"<caption>{caption}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
        )


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return "  ".join(cells).rstrip()


def _named(row: Sequence[str]) -> str:
    first, *others = row
    return f'<th scope="row">{escaped(first)}</th>' + "".join(f"<td>{escaped(cell)}</td>" for cell in others)
