"""A graph as parts of an SVG: its nodes and edges, and the attention between nodes as the width of lines."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regardant.pictures.picture import Layout
from regardant.pictures.svg import escaped, shorten

RADIUS = 0.02
"""Radius of a node, as a share of the drawing's width."""

WIDEST = 0.05
"""Width of the line of the largest weight, as a share of the drawing's width."""

LABEL = 9.0
"""Pixels of the letters of a node's name."""


def drawn_graph(layout: Layout, x: float, y: float, width: float) -> list[str]:
    """Return the nodes with their names, and a line for each edge."""
    at = _places(layout, x, y, width)
    lines = "".join(_line(at[one], at[other]) for one, other in layout.edges)
    nodes = [f'<circle class="cell" cx="{left:.1f}" cy="{top:.1f}" r="{RADIUS * width:.1f}"/>' for left, top in at]
    names = [
        f'<text x="{left + RADIUS * width + 1:.1f}" y="{top:.1f}" dominant-baseline="central" '
        f'style="font-size: {LABEL}px">{escaped(shorten(label))}</text>'
        for (left, top), label in zip(at, layout.labels, strict=True)
    ]
    return [f'<path class="frame" d="{lines}"/>', *nodes, *names]


def weighted_graph(
    layout: Layout,
    matrix: NDArray[np.floating[Any]],
    weights: NDArray[np.floating[Any]],
    x: float,
    y: float,
    width: float,
) -> list[str]:
    """Return a line for each edge, as wide as its weight (the mean of both directions) beside the largest, and a circle
    for each node, as opaque as its weight.

    Args:
        matrix: weights between all elements; the nodes are the last ones.
        weights: weight of each node.
    """
    at = _places(layout, x, y, width)
    among = matrix[len(matrix) - len(at) :, matrix.shape[1] - len(at) :]
    ends = np.array(layout.edges, dtype=np.int64).reshape(-1, 2)
    of_edges = (among[ends[:, 0], ends[:, 1]] + among[ends[:, 1], ends[:, 0]]) / 2
    shares = of_edges / max(float(of_edges.max(initial=0)), 1e-9)
    lines = [
        f'<path class="weight" d="{_line(at[one], at[other])}" stroke-opacity="{share:.3f}" '
        f'stroke-width="{share * WIDEST * width:.2f}"><title>'
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


def _line(one: tuple[float, float], other: tuple[float, float]) -> str:
    return f"M{one[0]:.1f} {one[1]:.1f}L{other[0]:.1f} {other[1]:.1f}"
