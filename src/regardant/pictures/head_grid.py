"""All heads of all layers and kinds side by side, as a standalone SVG: one row per layer, one column per head."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regardant.pictures.graph import weighted_graph
from regardant.pictures.item import caption_of, drawn_item, item_weights, shades
from regardant.pictures.picture import AttentionPicture
from regardant.pictures.svg import FONT_SIZE, document, escaped, shaded, text_width

SIDE = 72  # of a head
GAP = 10
MARGIN = 24
MOST_CELLS = 64  # to a side: what is smaller than a pixel is not drawn


def head_grid_svg(pictures: Sequence[AttentionPicture]) -> str:
    """Return an SVG document of one item with a grid of heads for each kind of attention.

    A head is drawn as its matrix of weights, as shades over the item where the keys stand on a grid, or as weights on
    the edges of a graph. Raises ValueError without a picture.
    """
    if not pictures:
        raise ValueError("a grid without a picture; give at least one AttentionPicture")
    most_heads = max(picture.weights.shape[1] for picture in pictures)
    left = MARGIN + FONT_SIZE + GAP
    width = left + max(most_heads * (SIDE + GAP), 340) + MARGIN
    parts, items, y = _items(pictures, left, float(MARGIN))
    width = max(width, left + (text_width(caption_of(pictures)) if parts else 0) + MARGIN)
    for picture, item in zip(pictures, items, strict=True):
        num_layers, num_heads = picture.weights.shape[:2]
        y += FONT_SIZE
        parts.append(f'<text x="{MARGIN}" y="{y:.1f}">{escaped(picture.kind)}</text>')
        y += 2 * GAP
        parts += [_number(head, left + head * (SIDE + GAP) + SIDE / 2, y) for head in range(num_heads)]
        y += GAP
        height = _height(picture)
        for layer in range(num_layers):
            parts.append(_number(layer, MARGIN + FONT_SIZE / 2, y + height / 2 + 4))
            for head in range(num_heads):
                parts += _head(picture, item, layer, head, left + head * (SIDE + GAP), y)
            y += height + GAP
        y += GAP
    page = f'<rect class="page" x="0.5" y="0.5" width="{width - 1:.0f}" height="{y + MARGIN - 1:.0f}" rx="10"/>'
    title = f"{pictures[0].title}: all layers and heads"
    return document([page, *parts], width, y + MARGIN, title=title)


@dataclass(frozen=True)
class Placed:
    """An item that is drawn once, and referred to by each head: a picture is in the file one time."""

    number: int
    x: float
    y: float

    def again(self, x: float, y: float, width: float) -> str:
        """Return the item at another place, so many pixels wide."""
        scale = width / (2 * SIDE)
        at = f"translate({x - self.x * scale:.2f} {y - self.y * scale:.2f}) scale({scale:.4g})"
        return f'<use href="#item-{self.number}" transform="{at}"/>'


def _items(pictures: Sequence[AttentionPicture], x: float, y: float) -> tuple[list[str], list[Placed | None], float]:
    """Return every item that stands on a grid, its place for each picture, and the height where the rest begins."""
    layouts = [one.source_layout for one in pictures]
    parts: list[str] = []
    placed: list[Placed | None] = []
    for number, layout in enumerate(layouts):
        if layout is None:
            placed.append(None)
        elif (first := layouts.index(layout)) < number:
            placed.append(placed[first])
        else:
            placed.append(Placed(number, x, y))
            parts += [f'<g id="item-{number}">', *drawn_item(layout, x, y, 2 * SIDE), "</g>"]
            y += 2 * SIDE * layout.height + GAP
    if parts:
        y += FONT_SIZE
        parts.append(f'<text class="quiet" x="{x:.1f}" y="{y:.1f}">{escaped(caption_of(pictures))}</text>')
        y += 2 * GAP
    return parts, placed, y


def _height(picture: AttentionPicture) -> float:
    layout = picture.source_layout
    return SIDE * (min(1.0, len(picture.target) / len(picture.source)) if layout is None else layout.height)


def _head(picture: AttentionPicture, item: Placed | None, layer: int, head: int, x: float, y: float) -> list[str]:
    layout = picture.source_layout
    if layout is None or item is None:
        return _thumbnail(picture.matrix(layer, head), x, y)
    weights = item_weights(picture, layer, head)
    if layout.places:
        return weighted_graph(layout, picture.matrix(layer, head), weights, x, y, SIDE)
    return [item.again(x, y, SIDE), *shades(weights, layout, x, y, SIDE)]


def _number(number: int, x: float, y: float) -> str:
    return f'<text class="quiet" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{number}</text>'


def _thumbnail(weights: NDArray[np.floating[Any]], x: float, y: float) -> list[str]:
    weights = pooled(weights, MOST_CELLS)
    rows, columns = weights.shape
    cell = SIDE / max(rows, columns)
    frame = f'<rect class="frame" x="{x:.1f}" y="{y:.1f}" width="{columns * cell:.1f}" height="{rows * cell:.1f}"/>'
    return [frame, *shaded(weights, x, y, cell)]


def pooled(weights: NDArray[np.floating[Any]], most: int) -> NDArray[np.floating[Any]]:
    """Return the largest of every block, so that there are at most so many rows and columns."""
    down, across = (-(-length // most) for length in weights.shape)
    padded = np.pad(weights, ((0, -weights.shape[0] % down), (0, -weights.shape[1] % across)))
    blocks = padded.reshape(padded.shape[0] // down, down, padded.shape[1] // across, across)
    largest: NDArray[np.floating[Any]] = blocks.max((1, 3))
    return largest
