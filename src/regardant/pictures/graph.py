"""A graph as parts of an SVG: its nodes and edges, and the attention between nodes as the width of lines."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regardant.pictures.picture import Layout
from regardant.pictures.svg import FONT_SIZE, escaped, label, shorten, text_width

RADIUS = 0.02
"""Radius of a node, as a share of the drawing's width."""

WIDEST = 0.05
"""Width of the line of the largest weight, as a share of the drawing's width."""

MOST_WIDTH = 9.0
"""Largest width of that line, in pixels."""

LETTERS = 11.0
"""Font size of a node's name, in pixels."""

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def drawn_graph(layout: Layout, x: float, y: float, width: float) -> list[str]:
    """Return the nodes with their names, and a line for each edge."""
    at = _places(layout, x, y, width)
    nodes = [f'<circle class="cell" cx="{left:.1f}" cy="{top:.1f}" r="{RADIUS * width:.1f}"/>' for left, top in at]
    return [edges(layout, x, y, width), *nodes, *node_names(layout, x, y, width)]


def edges(layout: Layout, x: float, y: float, width: float) -> str:
    """Return a line for each edge."""
    at = _places(layout, x, y, width)
    lines = "".join(_line(at[one], at[other]) for one, other in layout.edges)
    return f'<path class="frame" d="{lines}"/>'


def node_names(layout: Layout, x: float, y: float, width: float) -> list[str]:
    """Return the name of each node, placed beside it where it overlaps no node or name and stays within the drawing.

    A name that fits nowhere is left out.
    """
    radius = RADIUS * width
    at = _places(layout, x, y, width)
    taken: list[Box] = [(left - radius, top - radius, left + radius, top + radius) for left, top in at]
    names = []
    for number, ((left, top), name) in enumerate(zip(at, layout.labels, strict=True)):
        wide = text_width(shorten(name)) * LETTERS / FONT_SIZE
        for anchor, middle, height in (
            ("start", left + radius + 2 + wide / 2, top),
            ("end", left - radius - 2 - wide / 2, top),
            ("middle", left, top - radius - 2 - LETTERS / 2),
            ("middle", left, top + radius + 2 + LETTERS / 2),
        ):
            box = (middle - wide / 2, height - LETTERS / 2, middle + wide / 2, height + LETTERS / 2)
            others = (one for index, one in enumerate(taken) if index != number)
            if box[0] >= x and box[2] <= x + width and not any(_overlap(box, one) for one in others):
                edge = {"start": box[0], "end": box[2], "middle": middle}[anchor]
                place = f'class="name" x="{edge:.1f}" y="{height:.1f}" text-anchor="{anchor}"'
                names.append(label(name, f'{place} dominant-baseline="central"'))
                taken.append(box)
                break
    return names


def weighted_graph(
    layout: Layout,
    matrix: NDArray[np.floating[Any]],
    weights: NDArray[np.floating[Any]],
    x: float,
    y: float,
    width: float,
) -> list[str]:
    """Return a line for each edge, as wide as its weight (the mean of both directions) relative to the largest, and a
    circle for each node, as opaque as its weight.

    Args:
        matrix: weights between all elements; the nodes are the last ones.
        weights: weight of each node.
    """
    at = _places(layout, x, y, width)
    widest = min(MOST_WIDTH, WIDEST * width)
    among = matrix[len(matrix) - len(at) :, matrix.shape[1] - len(at) :]
    ends = np.array(layout.edges, dtype=np.int64).reshape(-1, 2)
    of_edges = (among[ends[:, 0], ends[:, 1]] + among[ends[:, 1], ends[:, 0]]) / 2
    shares = of_edges / max(float(of_edges.max(initial=0)), 1e-9)
    lines = [
        f'<path class="weight" d="{_line(at[one], at[other])}" stroke-opacity="{share:.3f}" '
        f'stroke-width="{share * widest:.2f}"><title>'
        f"{escaped(f'{layout.labels[one]} and {layout.labels[other]}: {weight:.3f}')}</title></path>"
        for (one, other), share, weight in zip(layout.edges, shares, of_edges, strict=True)
    ]
    opacity = weights / max(float(weights.max()), 1e-9)
    nodes = [
        f'<circle class="lit" cx="{left:.1f}" cy="{top:.1f}" r="{RADIUS * width:.1f}" fill-opacity="{shade:.3f}"/>'
        for (left, top), shade in zip(at, opacity, strict=True)
    ]
    return [*lines, *nodes]


def _places(layout: Layout, x: float, y: float, width: float) -> list[tuple[float, float]]:
    inner = width * (1 - 4 * RADIUS)
    return [
        (x + 2 * RADIUS * width + left * inner, y + 2 * RADIUS * width + top * inner) for left, top in layout.places
    ]


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _line(one: tuple[float, float], other: tuple[float, float]) -> str:
    return f"M{one[0]:.1f} {one[1]:.1f}L{other[0]:.1f} {other[1]:.1f}"
