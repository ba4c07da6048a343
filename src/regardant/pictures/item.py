"""An item whose elements stand on a grid or are nodes of a graph, as parts of an SVG: its picture or labels, and shades
over its elements."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regardant.pictures.graph import drawn_graph
from regardant.pictures.picture import AttentionPicture, Layout
from regardant.pictures.svg import DARKEST, FONT_SIZE, escaped, shorten

LEAST_GAP = 4.0
"""Smallest gap between two lines of a grid, in pixels: closer lines would hide the picture."""


def drawn_item(layout: Layout, x: float, y: float, width: float) -> list[str]:
    """Return the item, `width` pixels wide: its picture or its labels, under the lines of the grid, or its graph."""
    if layout.places:
        return drawn_graph(layout, x, y, width)
    side, height = width / layout.columns, width * layout.height
    down = side * layout.aspect
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    if layout.picture is None:
        content = [_label(layout, number, x, y, side) for number in range(len(layout.labels))]
    else:
        image = f'<image {place} preserveAspectRatio="none" style="image-rendering: pixelated"'
        content = [f'{image} href="{escaped(layout.picture)}"/>']
    lines = [f"M{x:.1f} {y + row * down:.1f}h{width:.1f}" for row in range(1, layout.rows)]
    if side >= LEAST_GAP:
        lines += [f"M{x + column * side:.1f} {y:.1f}v{height:.1f}" for column in range(1, layout.columns)]
    return [*content, f'<rect class="frame" {place}/>', f'<path class="frame" d="{"".join(lines)}"/>']


def shades(weights: NDArray[np.floating[Any]], layout: Layout, x: float, y: float, width: float) -> list[str]:
    """Return a rectangle over each element, as opaque as its weight [rows * columns] relative to the largest."""
    side = width / layout.columns
    down = side * layout.aspect
    opacity = DARKEST * weights / max(float(weights.max()), 1e-9)
    return [
        f'<rect class="lit" x="{x + number % layout.columns * side:.1f}" y="{y + number // layout.columns * down:.1f}" '
        f'width="{side:.1f}" height="{down:.1f}" fill-opacity="{opacity[number]:.3f}">'
        f"<title>{escaped(f'{label}: {weights[number]:.3f}')}</title></rect>"
        for number, label in enumerate(layout.labels)
    ]


def key_weights(picture: AttentionPicture, layer: int, head: int | None) -> NDArray[np.floating[Any]]:
    """Return the weights [S] of a head, or of the mean of the layer's heads for None: the row of the class token, or
    the mean of all rows."""
    matrix = picture.matrix(layer, head)
    found: NDArray[np.floating[Any]] = matrix.mean(0) if picture.class_token is None else matrix[0]
    return found


def item_weights(picture: AttentionPicture, layer: int, head: int | None) -> NDArray[np.floating[Any]]:
    """Return the `key_weights` of the elements of the layout only."""
    assert picture.source_layout is not None
    return key_weights(picture, layer, head)[len(picture.source) - len(picture.source_layout.labels) :]


def _label(layout: Layout, number: int, x: float, y: float, side: float) -> str:
    size, down = min(FONT_SIZE, side / 3), side * layout.aspect
    at = f'x="{x + (number % layout.columns + 0.5) * side:.1f}" y="{y + (number // layout.columns + 0.5) * down:.1f}"'
    text = escaped(shorten(layout.labels[number], max(2, int(side / size / 0.58))))
    return f'<text {at} text-anchor="middle" dominant-baseline="central" style="font-size: {size:.1f}px">{text}</text>'


def asking(picture: AttentionPicture) -> str:
    """Return the name of the attention that is drawn over an item."""
    return f"attention of {picture.class_token}" if picture.class_token else "mean attention of all queries"


def caption_of(pictures: Sequence[AttentionPicture]) -> str:
    """Return one line that names the queries whose attention is drawn over items. Empty where no item is drawn."""
    named = dict.fromkeys(asking(one) for one in pictures if one.source_layout is not None)
    return f"Shades over the item: {' or '.join(named)}." if named else ""
