"""Picture of all heads of all layers and kinds, as a standalone SVG: one row per layer, one column per head."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regardant.pictures.graph import weighted_graph
from regardant.pictures.item import caption_of, drawn_item, item_weights, shades
from regardant.pictures.picture import AttentionPicture
from regardant.pictures.svg import FONT_SIZE, Drawing, document, escaped, fitted, page, ramp, shaded

SIDE = 72  # pixels of a head's drawing
GAP = 10
MARGIN = 24
LAYER = 66  # width of the name of a layer
LEAST_WIDTH = 480  # of the texts above the heads
ITEM = 240  # width of an item
MOST_ITEM = 480  # largest height of an item
MOST_CELLS = 64  # rows and columns drawn: more would be smaller than a pixel


def head_grid_svg(pictures: Sequence[AttentionPicture]) -> Drawing:
    """Return an SVG document of one item with a grid of heads for each kind of attention.

    A head is drawn as its matrix of weights, as shades over the item where the keys stand on a grid, or as weights on
    the edges of a graph. Raises ValueError if there is no picture.
    """
    if not pictures:
        raise ValueError("a grid without a picture; give at least one AttentionPicture")
    most_heads = max(picture.weights.shape[1] for picture in pictures)
    left = MARGIN + LAYER
    width = max(left + most_heads * (SIDE + GAP), MARGIN + LEAST_WIDTH, *_scale_widths(pictures)) + MARGIN
    parts, y = _heading(pictures, width - 2 * MARGIN)
    items_drawn, items, y = _items(pictures, MARGIN, y)
    parts += items_drawn
    for picture, item in zip(pictures, items, strict=True):
        num_layers, num_heads = picture.weights.shape[:2]
        y += FONT_SIZE + GAP
        parts.append(f'<text class="title" x="{MARGIN}" y="{y:.1f}">{escaped(picture.kind)}</text>')
        y += 2 * GAP
        parts += [_name(f"head {head + 1}", left + head * (SIDE + GAP) + SIDE / 2, y) for head in range(num_heads)]
        y += GAP
        height = _height(picture)
        for layer in range(num_layers):
            parts.append(_name(f"layer {layer + 1}", MARGIN, y + height / 2 + 4, anchor="start"))
            for head in range(num_heads):
                parts += _head(picture, item, layer, head, left + head * (SIDE + GAP), y)
            y += height + GAP
        y += GAP
    y += GAP
    for scale in _scales(pictures):
        parts.append(scale.drawn(MARGIN, y)[0])
        y += 2 * GAP
    return document([page(width, y + GAP), *parts], width, y + GAP, title=f"{pictures[0].title}: all layers and heads")


def _heading(pictures: Sequence[AttentionPicture], width: float) -> tuple[list[str], float]:
    """Return the title, the item, its answer and the caption, a line each, and the y at which the rest begins."""
    y = float(MARGIN + FONT_SIZE)
    parts = [f'<text class="title" x="{MARGIN}" y="{y:.1f}">All layers and heads</text>']
    for line in (pictures[0].title, pictures[-1].note, caption_of(pictures)):
        if line:
            y += FONT_SIZE + 6
            full = f"<title>{escaped(line)}</title>"
            parts.append(f'<text class="quiet" x="{MARGIN}" y="{y:.1f}">{full}{escaped(fitted(line, width))}</text>')
    return parts, y + GAP


class ShadeScale(NamedTuple):
    """A scale of shades."""

    name: str
    most: str
    of_cells: bool
    """True for cells of a matrix, False for shades over an item."""

    def drawn(self, x: float, y: float) -> tuple[str, float]:
        """Return the scale, vertically centred on y, and its width."""
        return ramp(x, y, self.name, self.most, of_cells=self.of_cells)


def _scales(pictures: Sequence[AttentionPicture]) -> list[ShadeScale]:
    """Return the distinct scales of the drawing, those of cells first."""
    of_cells = dict.fromkeys(ShadeScale(one.scale, "100%", True) for one in pictures if one.source_layout is None)
    over_items = any(one.source_layout is not None for one in pictures)
    return [*of_cells, *([ShadeScale("of the head", "largest weight", False)] if over_items else [])]


def _scale_widths(pictures: Sequence[AttentionPicture]) -> list[float]:
    return [MARGIN + scale.drawn(0, 0)[1] for scale in _scales(pictures)]


@dataclass(frozen=True)
class Placed:
    """An item that is drawn once and reused by each head, so that the file holds its picture once."""

    name: str
    x: float
    y: float
    width: float

    def again(self, x: float, y: float, width: float) -> str:
        """Return the item again at (x, y), `width` pixels wide."""
        scale = width / self.width
        at = f"translate({x - self.x * scale:.2f} {y - self.y * scale:.2f}) scale({scale:.4g})"
        return f'<use href="#{self.name}" transform="{at}"/>'


def _items(pictures: Sequence[AttentionPicture], x: float, y: float) -> tuple[list[str], list[Placed | None], float]:
    """Return every item that stands on a grid, its place for each picture, and the y at which the rest begins."""
    layouts = [one.source_layout for one in pictures]
    parts: list[str] = []
    placed: list[Placed | None] = []
    for number, layout in enumerate(layouts):
        if layout is None:
            placed.append(None)
        elif (first := layouts.index(layout)) < number:
            placed.append(placed[first])
        else:
            width = max(2 * SIDE, min(ITEM, MOST_ITEM / layout.height))
            drawn = drawn_item(layout, x, y, width)
            name = f"item-{zlib.crc32(''.join(drawn).encode()):08x}"  # a notebook has many drawings in one document
            placed.append(Placed(name, x, y, width))
            parts += [f'<g id="{name}">', *drawn, "</g>"]
            y += width * layout.height + GAP
    return parts, placed, y


def _height(picture: AttentionPicture) -> float:
    """Return the height of a head's drawing, in pixels."""
    if picture.source_layout is not None:
        return SIDE * picture.source_layout.height
    rows, columns = pooled(picture.matrix(0, 0), MOST_CELLS).shape
    return float(SIDE * rows / max(rows, columns))


def _head(picture: AttentionPicture, item: Placed | None, layer: int, head: int, x: float, y: float) -> list[str]:
    layout = picture.source_layout
    if layout is None or item is None:
        return _thumbnail(picture.matrix(layer, head), x, y)
    weights = item_weights(picture, layer, head)
    if layout.places:
        return weighted_graph(layout, picture.matrix(layer, head), weights, x, y, SIDE)
    return [item.again(x, y, SIDE), *shades(weights, layout, x, y, SIDE)]


def _name(name: str, x: float, y: float, anchor: str = "middle") -> str:
    return f'<text class="quiet" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{name}</text>'


def _thumbnail(weights: NDArray[np.floating[Any]], x: float, y: float) -> list[str]:
    weights = pooled(weights, MOST_CELLS)
    rows, columns = weights.shape
    cell = SIDE / max(rows, columns)
    frame = f'<rect class="frame" x="{x:.1f}" y="{y:.1f}" width="{columns * cell:.1f}" height="{rows * cell:.1f}"/>'
    return [frame, *shaded(weights, x, y, cell)]


def pooled(weights: NDArray[np.floating[Any]], most: int) -> NDArray[np.floating[Any]]:
    """Return the maximum of every block, so that at most `most` rows and columns remain."""
    down, across = (-(-length // most) for length in weights.shape)
    padded = np.pad(weights, ((0, -weights.shape[0] % down), (0, -weights.shape[1] % across)))
    blocks = padded.reshape(padded.shape[0] // down, down, padded.shape[1] // across, across)
    largest: NDArray[np.floating[Any]] = blocks.max((1, 3))
    return largest
