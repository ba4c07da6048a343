"""One head as a standalone SVG: the darker a cell, the harder its target word looks at that source word.

A cell's opacity is its weight, so one ink serves light and dark pages; rings are the gold links.
"""

from collections.abc import Sequence
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
"""Pixels of a cell of a short sentence."""

MOST_SIDE = 1920
"""Pixels of all rows or columns: the cells of longer sentences are smaller."""

LEAST_NAMED = 13
"""Pixels of a cell beside which a word can still be read."""

MARGIN = 24
GAP = 10  # between a word and its row or column
TITLE = 34  # from the upper edge of the title to the words below it
RING = 2.5  # stroke of a gold link
SLANT = 0.7071  # sine and cosine of the 45 degrees the source words lean
SCALE_NAME = "of a row's attention"
GOLD = "gold link"

MOST_CELLS = 4096
"""Drawn one by one and named; of more only the shades are drawn."""


def heat_map_svg(picture: AttentionPicture, layer: int, head: int | None) -> Drawing:
    """Return a whole SVG document of one head, or with None of the mean of the layer's heads. Indices count from 0."""
    weights = picture.matrix(layer, head)
    rows, columns = weights.shape
    cell = min(CELL, MOST_SIDE / max(rows, columns))
    named = cell >= LEAST_NAMED
    size = min(1.0, 0.6 * cell / FONT_SIZE)  # of words, so that two that lean do not touch
    caption = picture.head_name(layer, head)

    widest = size * max(text_width(shorten(word)) for word in picture.target) if named else 0
    reach = [SLANT * size * text_width(shorten(word)) if named else 0 for word in picture.source]
    left = MARGIN + widest + GAP
    top = MARGIN + TITLE + max(reach) + GAP
    lean = max(0.0, *(end - (columns - 0.6 - i) * cell for i, end in enumerate(reach)))
    scale, scale_width = _scale(MARGIN, top + rows * cell + 2 * GAP + 2, with_gold=bool(picture.gold))
    width = max(left + columns * cell + lean, MARGIN + scale_width, MARGIN + 1.1 * text_width(caption)) + MARGIN
    height = top + rows * cell + 3 * GAP + MARGIN

    parts = [
        page(width, height),
        f'<text class="title" x="{MARGIN}" y="{MARGIN + FONT_SIZE}">{escaped(caption)}</text>',
    ]
    if named:
        parts += _words(picture, left, top, cell, size)
    else:
        note = fitted(f"{rows:,} rows and {columns:,} columns, too many to name", width - 2 * MARGIN)
        parts.append(f'<text class="quiet" x="{MARGIN}" y="{MARGIN + TITLE}">{note}</text>')
    parts += (
        _cells(picture, weights, left, top, cell) if weights.size <= MOST_CELLS else shaded(weights, left, top, cell)
    )
    parts.append(
        f'<rect class="frame" x="{left:.1f}" y="{top:.1f}" width="{columns * cell:.1f}" height="{rows * cell:.1f}"/>'
    )
    parts += [_ring(left + column * cell, top + row * cell, cell) for column, row in sorted(picture.gold)]
    return document([*parts, scale], width, height, title=f"{picture.title}: {caption}")


def _words(picture: AttentionPicture, left: float, top: float, cell: float, size: float) -> list[str]:
    style = "" if size == 1 else f' style="font-size: {size * FONT_SIZE:.1f}px"'
    columns = [
        label(word, f'transform="translate({left + (i + 0.6) * cell:.1f} {top - GAP:.1f}) rotate(-45)"{style}')
        for i, word in enumerate(picture.source)
    ]
    at = f'x="{left - GAP:.1f}" text-anchor="end" dominant-baseline="central"{style}'
    rows = [label(word, f'y="{top + (row + 0.5) * cell:.1f}" {at}') for row, word in enumerate(picture.target)]
    return [*columns, *rows]


def _cells(
    picture: AttentionPicture, weights: NDArray[np.floating[Any]], left: float, top: float, cell: float
) -> Sequence[str]:
    cells = []
    for (row, column), weight in np.ndenumerate(weights):
        what = f"{picture.target[row]} looks at {picture.source[column]}: {weight:.2f}"
        cells.append(
            f'<rect class="cell" x="{left + column * cell:.1f}" y="{top + row * cell:.1f}" width="{cell:.4g}" '
            f'height="{cell:.4g}" fill-opacity="{min(weight, 1.0):.3f}"><title>{escaped(what)}</title></rect>'
        )
    return cells


def _ring(x: float, y: float, cell: float) -> str:
    inset = RING / 2
    side = cell - RING
    return (
        f'<rect class="gold" x="{x + inset:.2f}" y="{y + inset:.2f}" width="{side:.4g}" height="{side:.4g}" rx="2.5"/>'
    )


def _scale(x: float, y: float, *, with_gold: bool) -> tuple[str, float]:
    """Return the legend of the shades, and of the rings if there are any, and its width."""
    scale, width = ramp(x, y, SCALE_NAME, "100%", of_cells=True)
    if not with_gold:
        return scale, width
    x += width + 2 * GAP
    words = f'<text class="quiet" x="{x + 22:.1f}" y="{y:.1f}" dominant-baseline="central">{GOLD}</text>'
    return scale + _ring(x, y - 8, 16) + words, width + 2 * GAP + 22 + text_width(GOLD)
