"""All heads of all layers and kinds side by side, as a standalone SVG: a row a layer, a column a head."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regardant.pictures.picture import AttentionPicture
from regardant.pictures.svg import FONT_SIZE, document, escaped, shaded

SIDE = 72  # of a head
GAP = 10
MARGIN = 24
MOST_CELLS = 64  # to a side: what is smaller than a pixel is not drawn


def head_grid_svg(pictures: Sequence[AttentionPicture]) -> str:
    """A whole SVG document of one sentence, a grid for each kind of attention. Raises ValueError without a picture."""
    if not pictures:
        raise ValueError("a grid without a picture; give at least one AttentionPicture")
    most_heads = max(picture.weights.shape[1] for picture in pictures)
    left = MARGIN + FONT_SIZE + GAP
    width = left + max(most_heads * (SIDE + GAP), 340) + MARGIN
    parts, y = [], float(MARGIN)
    for picture in pictures:
        num_layers, num_heads = picture.weights.shape[:2]
        y += FONT_SIZE
        parts.append(f'<text x="{MARGIN}" y="{y:.1f}">{escaped(picture.kind)}</text>')
        y += 2 * GAP
        parts += [_number(head, left + head * (SIDE + GAP) + SIDE / 2, y) for head in range(num_heads)]
        y += GAP
        height = SIDE * min(1.0, len(picture.target) / len(picture.source))
        for layer in range(num_layers):
            parts.append(_number(layer, MARGIN + FONT_SIZE / 2, y + height / 2 + 4))
            for head in range(num_heads):
                parts += _thumbnail(picture.matrix(layer, head), left + head * (SIDE + GAP), y)
            y += height + GAP
        y += GAP
    page = f'<rect class="page" x="0.5" y="0.5" width="{width - 1:.0f}" height="{y + MARGIN - 1:.0f}" rx="10"/>'
    title = f"{pictures[0].title}: all layers and heads"
    return document([page, *parts], width, y + MARGIN, title=title)


def _number(number: int, x: float, y: float) -> str:
    return f'<text class="quiet" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{number}</text>'


def _thumbnail(weights: NDArray[np.floating[Any]], x: float, y: float) -> list[str]:
    weights = pooled(weights, MOST_CELLS)
    rows, columns = weights.shape
    cell = SIDE / max(rows, columns)
    frame = f'<rect class="frame" x="{x:.1f}" y="{y:.1f}" width="{columns * cell:.1f}" height="{rows * cell:.1f}"/>'
    return [frame, *shaded(weights, x, y, cell)]


def pooled(weights: NDArray[np.floating[Any]], most: int) -> NDArray[np.floating[Any]]:
    """The largest of every block, so that there are at most so many rows and columns."""
    down, across = (-(-length // most) for length in weights.shape)
    padded = np.pad(weights, ((0, -weights.shape[0] % down), (0, -weights.shape[1] % across)))
    blocks = padded.reshape(padded.shape[0] // down, down, padded.shape[1] // across, across)
    largest: NDArray[np.floating[Any]] = blocks.max((1, 3))
    return largest
