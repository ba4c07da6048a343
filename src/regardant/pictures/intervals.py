"""Dots with intervals as SVG elements of a page: scores of runs, or their differences from one run.

The axis spans the intervals, not zero, since runs worth comparing often differ by less than a pixel of a bar; its range
is written below. A run has a colour, a mark and its name. Positions are shares of the width, so a chart fits any page.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from regardant.pictures.charts import GAP, HUES, LINE, LONGEST_NAME, WIDTH, round_ticks
from regardant.pictures.svg import escaped, label, text_width

MARKS = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",  # a circle
    "M-5 -5h10v10h-10z",  # a square
    "M0 -7L7 0L0 7L-7 0z",  # a diamond
    "M0 -6L6.5 5.5H-6.5z",  # a triangle
)

MARGIN = 6.0
"""Margin on each side of the axis, in % of the width: room for half of a tick's number."""

PARTS = 4
"""Intended number of steps of the axis. The numbers of twice as many would overlap on a phone."""

LONGEST_HEADING = 38
"""Largest number of characters of a heading, for which a phone has room."""

LONGEST_ON_WIDE = 56
"""Largest number of characters of a run's name on a page wider than a phone."""

INDENT = 18
"""Pixels from the mark of a row to its name."""


@dataclass(frozen=True)
class Estimate:
    """A number of a run with its uncertainty."""

    name: str
    value: float
    interval: tuple[float, float]
    series: int
    """Index of the run, which selects its colour and its mark."""


@dataclass(frozen=True)
class Estimates:
    """A group of estimates under a heading."""

    name: str
    rows: Sequence[Estimate]


@dataclass(frozen=True)
class Axis:
    """Linear scale from numbers to shares of the width."""

    ticks: Sequence[float]

    def at(self, number: float) -> str:
        """Return the coordinate of a number, in % of the width."""
        low, high = self.ticks[0], self.ticks[-1]
        return f"{MARGIN + (100 - 2 * MARGIN) * (number - low) / (high - low):.2f}%"


def interval_chart(
    groups: Sequence[Estimates],
    *,
    title: str,
    axis_label: str,
    highest: float = math.inf,
    decimals: int = 2,
    differences: bool = False,
) -> str:
    """Draw a dot and an interval for each estimate, group under group, over one axis that ends at `highest` at most.

    The axis of `differences` includes zero, which has a line of its own, and their numbers have a sign. Raises
    ValueError if there is no estimate.
    """
    bounds = [bound for group in groups for row in group.rows for bound in (*row.interval, row.value)]
    if not bounds:
        raise ValueError("a chart without estimates; give at least one")
    axis = Axis(_ticks([*bounds, 0.0] if differences else bounds, highest))
    number = f"{{:{'+' if differences else ''}.{decimals}f}}"
    rows, y = [], 0.0
    for group in groups:
        y += 2.0 * LINE
        rows.append(label(group.name, f'class="heading" x="0" y="{y - 0.5 * LINE:.1f}"', LONGEST_HEADING))
        for row in group.rows:
            rows.append(_row(row, axis, y, number))
            y += 2.0 * LINE
    under = [_grid(tick, axis, y, is_zero=differences and abs(tick) < 1e-9) for tick in axis.ticks]
    low, high = axis.ticks[0], axis.ticks[-1]
    ends = f"{axis_label}; the axis runs from {low:g} to {high:g}"
    below = y + 2.0 * LINE
    under.append(f'<text class="faint" x="50%" y="{below:.1f}" text-anchor="middle">{escaped(ends)}</text>')
    size = f'width="{WIDTH}" height="{below + LINE:.0f}"'
    return "\n".join([f'<svg class="fluid" role="img" aria-label="{escaped(title)}" {size}>', *under, *rows, "</svg>"])


def _ticks(numbers: Sequence[float], highest: float) -> list[float]:
    low, high = min(numbers), min(max(numbers), highest)  # rounding may raise a BLEU of 100 above 100
    if low >= high:
        low, high = min(low, high) - 0.5, min(high + 0.5, highest)
    return round_ticks(low, high, PARTS)


def _grid(tick: float, axis: Axis, bottom: float, *, is_zero: bool) -> str:
    x = axis.at(tick)
    return (
        f'<line class="{"zero" if is_zero else "grid"}" x1="{x}" x2="{x}" y1="{1.5 * LINE:.1f}" y2="{bottom:.1f}"/>'
        f'<text class="faint" x="{x}" y="{bottom + LINE:.1f}" text-anchor="middle">{tick:g}</text>'
    )


def _row(row: Estimate, axis: Axis, y: float, number: str) -> str:
    """Return a line with mark, name and numbers, and the interval below it."""
    low, high = row.interval
    words, drawn = y + LINE / 2, y + 1.5 * LINE
    bounds = f"95 % interval {number.format(low)} to {number.format(high)}"
    of_text = f'y="{words:.1f}" dominant-baseline="central"'
    room = text_width(number.format(row.value)) + GAP
    mark = MARKS[row.series % len(MARKS)]
    name = _name(row.name, f'x="{INDENT}" {of_text}')
    hover = escaped(f"{row.name}: {number.format(row.value)}, {bounds}")
    return (
        f'<g class="hue-{row.series % HUES}"><title>{hover}</title>'
        f'<svg x="7" y="{words:.1f}" overflow="visible"><path class="point" d="{mark}"/></svg>{name}'
        f'<text class="faint bounds" x="100%" dx="-{room:.0f}" {of_text} text-anchor="end">{bounds}</text>'
        f'<text x="100%" {of_text} text-anchor="end">{number.format(row.value)}</text>'
        f'<line class="interval" x1="{axis.at(low)}" x2="{axis.at(high)}" y1="{drawn:.1f}" y2="{drawn:.1f}"/>'
        f'<svg x="{axis.at(row.value)}" y="{drawn:.1f}" overflow="visible"><path class="point" d="{mark}"/></svg></g>'
    )


def _name(name: str, place: str) -> str:
    """Return the name of a row: one element for every width, or two of which `chart.css` shows one."""
    if len(name) <= LONGEST_NAME:
        return label(name, place, LONGEST_NAME)
    on_phone = label(name, f'class="narrow" {place}', LONGEST_NAME)
    return on_phone + label(name, f'class="wide" {place}', LONGEST_ON_WIDE)
