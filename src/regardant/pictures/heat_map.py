"""One head as a standalone SVG: the darker a cell, the harder its target word looks at that source word.

A cell's opacity is its weight, so one ink serves light and dark pages; rings are the gold links.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regardant.pictures.picture import AttentionPicture
from regardant.pictures.svg import FONT_SIZE, document, escaped, shaded, shorten, text_width

CELL = 32
MARGIN = 24
GAP = 10  # between a word and its row or column
RING = 2.5  # stroke of a gold link
SLANT = 0.7071  # sine and cosine of the 45 degrees the source words lean
LEGEND = "gold link"

MOST_CELLS = 4096
"""Drawn one by one and named; of more only the shades are drawn."""


def heat_map_svg(picture: AttentionPicture, layer: int, head: int | None) -> str:
    """Return a whole SVG document of one head, or with None of the mean of the layer's heads. Indices count from 0."""
    weights = picture.matrix(layer, head)
    rows, columns = weights.shape
    source = [shorten(word) for word in picture.source]
    target = [shorten(word) for word in picture.target]
    caption = f"{picture.kind}, layer {layer}, {'mean of heads' if head is None else f'head {head}'}"

    left = MARGIN + max(map(text_width, target)) + GAP
    top = MARGIN + SLANT * max(map(text_width, source)) + 2 * GAP
    lean = max(SLANT * text_width(word) - (columns - i - 1) * CELL for i, word in enumerate(source))
    width = left + max(columns * CELL + lean, text_width(caption + LEGEND) + 4 * GAP) + MARGIN
    bottom = top + rows * CELL
    height = bottom + GAP + 3 * FONT_SIZE

    parts = [f'<rect class="page" x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="10"/>']
    for column, word in enumerate(source):
        x, y = left + (column + 0.6) * CELL, top - GAP
        parts.append(f'<text transform="translate({x:.1f} {y:.1f}) rotate(-45)">{escaped(word)}</text>')
    for row, word in enumerate(target):
        y = top + (row + 0.5) * CELL
        parts.append(
            f'<text x="{left - GAP:.1f}" y="{y:.1f}" text-anchor="end" dominant-baseline="central">'
            f"{escaped(word)}</text>"
        )
    parts += _cells(picture, weights, left, top) if weights.size <= MOST_CELLS else shaded(weights, left, top, CELL)
    for column, row in sorted(picture.gold):
        parts.append(_ring(left + column * CELL, top + row * CELL, CELL))
    parts.append(_legend(left, bottom + GAP + FONT_SIZE, caption, with_gold=bool(picture.gold)))
    return document(parts, width, height, title=f"{picture.title}: {caption.lower()}")


def _cells(picture: AttentionPicture, weights: NDArray[np.floating[Any]], left: float, top: float) -> Sequence[str]:
    cells = []
    for (row, column), weight in np.ndenumerate(weights):
        what = f"{picture.target[row]} looks at {picture.source[column]}: {weight:.2f}"
        cells.append(
            f'<rect class="cell" x="{left + column * CELL:.1f}" y="{top + row * CELL:.1f}" width="{CELL}" '
            f'height="{CELL}" fill-opacity="{min(weight, 1.0):.3f}"><title>{escaped(what)}</title></rect>'
        )
    return cells


def _ring(x: float, y: float, cell: float) -> str:
    inset = RING / 2
    side = cell - RING
    return f'<rect class="gold" x="{x + inset:.2f}" y="{y + inset:.2f}" width="{side}" height="{side}" rx="2.5"/>'


def _legend(x: float, y: float, caption: str, *, with_gold: bool) -> str:
    words = f'<text class="quiet" x="{x:.1f}" y="{y:.1f}" dominant-baseline="central">{escaped(caption)}</text>'
    if not with_gold:
        return words
    x += text_width(caption) + 2 * GAP
    label = f'<text class="quiet" x="{x + 22:.1f}" y="{y:.1f}" dominant-baseline="central">{LEGEND}</text>'
    return words + _ring(x, y - 8, 16) + label
