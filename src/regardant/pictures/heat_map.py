"""Heat map of a matrix between words as a standalone SVG, such as the attention of target words to source words.

A cell's opacity is its number, so that one colour works on light and dark pages; rings mark the gold links.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regardant.pictures.picture import AttentionPicture
from regardant.pictures.svg import (
    FONT_SIZE,
    Drawing,
    document,
    escaped,
    fitted,
    label,
    page,
    ramp,
    shaded,
    shorten,
    text_width,
)

CELL = 32
"""Side of a cell of a short sentence, in pixels."""

MOST_SIDE = 1920
"""Largest extent of all rows or columns, in pixels: the cells of longer sentences are smaller."""

LEAST_NAMED = 13
"""Smallest side of a cell beside which a word is legible, in pixels."""

MARGIN = 24
GAP = 10  # between a word and its row or column
TITLE = 34  # from the upper edge of the title to the words below it
RING = 2.5  # stroke of a gold link
SLANT = 0.7071  # sine and cosine of the 45 degrees the source words lean
GOLD = "gold link"

MOST_CELLS = 4096
"""Largest number of cells drawn one by one with titles; of more only the shades are drawn."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """Numbers between the words of rows and columns."""

    title: str
    caption: str
    rows: Sequence[str]
    """Labels of T rows."""
    columns: Sequence[str]
    """Labels of S columns."""
    numbers: NDArray[np.floating[Any]]
    """[T, S]. Those below 0 are drawn as 0, those above 1 as 1."""
    relation: str
    """Words between a row and a column in the title of a cell, such as "looks at"."""
    scale: str
    """Meaning of 100%, such as "of a row's attention"."""
    gold: Collection[tuple[int, int]] = ()
    """(column, row) of cells with a ring."""


def heat_map_svg(picture: AttentionPicture, layer: int, head: int | None) -> Drawing:
    """Return an SVG document of one head, or of the mean of the layer's heads for None. Indices count from 0."""
    return matrix_svg(
        Matrix(
            title=picture.title,
            caption=picture.head_name(layer, head),
            rows=picture.target,
            columns=picture.source,
            numbers=picture.matrix(layer, head),
            relation="looks at",
            scale=picture.scale,
            gold=picture.gold,
        )
    )


def matrix_svg(matrix: Matrix) -> Drawing:
    """Return an SVG document of a matrix between words."""
    rows, columns = matrix.numbers.shape
    cell = min(CELL, MOST_SIDE / max(rows, columns))
    named = cell >= LEAST_NAMED
    size = min(1.0, 0.6 * cell / FONT_SIZE)  # of words, so that two that lean do not touch

    widest = size * max(text_width(shorten(word)) for word in matrix.rows) if named else 0
    reach = [SLANT * size * text_width(shorten(word)) if named else 0 for word in matrix.columns]
    left = MARGIN + widest + GAP
    top = MARGIN + TITLE + max(reach) + GAP
    lean = max(0.0, *(end - (columns - 0.6 - i) * cell for i, end in enumerate(reach)))
    scale, scale_width = _scale(MARGIN, top + rows * cell + 2 * GAP + 2, matrix.scale, with_gold=bool(matrix.gold))
    width = max(left + columns * cell + lean, MARGIN + scale_width, MARGIN + 1.1 * text_width(matrix.caption)) + MARGIN
    height = top + rows * cell + 3 * GAP + MARGIN

    parts = [
        page(width, height),
        f'<text class="title" x="{MARGIN}" y="{MARGIN + FONT_SIZE}">{escaped(matrix.caption)}</text>',
    ]
    if named:
        parts += _words(matrix, left, top, cell, size)
    else:
        note = fitted(f"{rows:,} rows and {columns:,} columns, too many to label", width - 2 * MARGIN)
        parts.append(f'<text class="quiet" x="{MARGIN}" y="{MARGIN + TITLE}">{note}</text>')
    few = matrix.numbers.size <= MOST_CELLS
    parts += _cells(matrix, left, top, cell) if few else shaded(matrix.numbers, left, top, cell)
    parts.append(
        f'<rect class="frame" x="{left:.1f}" y="{top:.1f}" width="{columns * cell:.1f}" height="{rows * cell:.1f}"/>'
    )
    parts += [_ring(left + column * cell, top + row * cell, cell) for column, row in sorted(matrix.gold)]
    return document([*parts, scale], width, height, title=f"{matrix.title}: {matrix.caption}")


def _words(matrix: Matrix, left: float, top: float, cell: float, size: float) -> list[str]:
    style = "" if size == 1 else f' style="font-size: {size * FONT_SIZE:.1f}px"'
    columns = [
        label(word, f'transform="translate({left + (i + 0.6) * cell:.1f} {top - GAP:.1f}) rotate(-45)"{style}')
        for i, word in enumerate(matrix.columns)
    ]
    at = f'x="{left - GAP:.1f}" text-anchor="end" dominant-baseline="central"{style}'
    rows = [label(word, f'y="{top + (row + 0.5) * cell:.1f}" {at}') for row, word in enumerate(matrix.rows)]
    return [*columns, *rows]


def _cells(matrix: Matrix, left: float, top: float, cell: float) -> Sequence[str]:
    cells = []
    for (row, column), number in np.ndenumerate(matrix.numbers):
        what = f"{matrix.rows[row]} {matrix.relation} {matrix.columns[column]}: {number:.2f}"
        cells.append(
            f'<rect class="cell" x="{left + column * cell:.1f}" y="{top + row * cell:.1f}" width="{cell:.4g}" '
            f'height="{cell:.4g}" fill-opacity="{min(max(number, 0.0), 1.0):.3f}"><title>{escaped(what)}</title></rect>'
        )
    return cells


def _ring(x: float, y: float, cell: float) -> str:
    inset = RING / 2
    side = cell - RING
    return (
        f'<rect class="gold" x="{x + inset:.2f}" y="{y + inset:.2f}" width="{side:.4g}" height="{side:.4g}" rx="2.5"/>'
    )


def _scale(x: float, y: float, name: str, *, with_gold: bool) -> tuple[str, float]:
    """Return the legend of the shades, and of the rings if there are any, and its width."""
    scale, width = ramp(x, y, name, "100%", of_cells=True)
    if not with_gold:
        return scale, width
    x += width + 2 * GAP
    words = f'<text class="quiet" x="{x + 22:.1f}" y="{y:.1f}" dominant-baseline="central">{GOLD}</text>'
    return scale + _ring(x, y - 8, 16) + words, width + 2 * GAP + 22 + text_width(GOLD)
