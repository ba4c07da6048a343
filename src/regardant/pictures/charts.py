"""Line and bar charts as SVG elements of a page, coloured by its stylesheet (chart.css), or as files of their own.

Hue alone distinguishes nothing: a curve has its name at its end and its own dashes, a bar its name and its number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from regardant.pictures.markup import asset
from regardant.pictures.svg import FONT_SIZE, escaped, shorten, text_width

WIDTH = 860
GAP = 10
LINE = 18  # pixels from one line of text to the next
LEAST_HEIGHT = 300  # of the plot area, in pixels
LONGEST_NAME = 30
HUES, DASHES = 6, 3  # numbers of hues and dash patterns in chart.css


@dataclass(frozen=True)
class Curve:
    """A line through points."""

    name: str
    points: Sequence[tuple[float, float]]
    """(x, y), at least one; x is ascending, and not negative on an axis that begins at 0."""
    band: Sequence[tuple[float, float]] = ()
    """Least and largest y at each point, shaded behind the line. Empty: no band."""


@dataclass(frozen=True)
class Bars:
    """A group of bars under a heading."""

    name: str
    bars: Sequence[tuple[str, float]]
    """(name, number); numbers are not negative."""
    ranges: Sequence[tuple[float, float]] = ()
    """Least and largest number of each bar, drawn as a line over its end. Empty: no lines."""


@dataclass(frozen=True)
class Scale:
    """Linear scale from numbers to pixels."""

    ticks: Sequence[float]
    start: float
    """Coordinate of the first tick."""
    end: float
    """Coordinate of the last tick."""

    def at(self, number: float) -> float:
        """Return the coordinate of a number."""
        low, high = self.ticks[0], self.ticks[-1]
        return self.start + (number - low) / (high - low) * (self.end - self.start)


def line_chart(curves: Sequence[Curve], *, title: str, x_label: str, y_label: str, from_zero: bool = True) -> str:
    """Draw curves over an x axis that begins at 0, or near the smallest x where `from_zero` is False.

    Raises ValueError for a curve without a point, and for no curve.
    """
    if not curves or not all(curve.points for curve in curves):
        raise ValueError("a chart without points; give at least one curve, and each curve at least one point")
    names = [shorten(curve.name, LONGEST_NAME) for curve in curves]
    xs, ys = zip(*(point for curve in curves for point in curve.points), strict=True)
    ys = (*ys, *(end for curve in curves for ends in curve.band for end in ends))
    across, up = round_ticks(0.0 if from_zero else min(xs), max(xs)), round_ticks(min(ys), max(ys))
    top = 2.0 * LINE
    bottom = top + max(LEAST_HEIGHT, LINE * len(curves))
    left = 2 * GAP + max(text_width(f"{tick:g}") for tick in up)
    right = WIDTH - 4 * GAP - max(map(text_width, names))
    x, y = Scale(across, left, right), Scale(up, bottom, top)
    label_heights = kept_apart([y.at(curve.points[-1][1]) for curve in curves], top, bottom)
    drawn = [
        _curve(curve, name, _look(number), x, y, height)
        for number, (curve, name, height) in enumerate(zip(curves, names, label_heights, strict=True))
    ]
    return _svg(bottom + 3 * LINE, title, [*_axes(x, y, x_label, y_label), *drawn])


def bar_chart(groups: Sequence[Bars], *, title: str) -> str:
    """Draw horizontal bars, group under group. Raises ValueError if there is no bar."""
    every = [bar for group in groups for bar in group.bars]
    if not every:
        raise ValueError("a chart without bars; give at least one")
    left = GAP + max(text_width(shorten(name, LONGEST_NAME)) for name, _ in every)
    largest = max([number for _, number in every] + [high for group in groups for _, high in group.ranges])
    scale = Scale(round_ticks(0.0, largest), left, WIDTH - 6 * GAP)
    parts, y = [], 0.0
    for group in groups:
        y += 2.0 * LINE
        parts.append(f'<text class="heading" x="0" y="{y - 0.5 * LINE:.1f}">{escaped(group.name)}</text>')
        ranges = group.ranges or [(number, number) for _, number in group.bars]
        for (name, number), ends in zip(group.bars, ranges, strict=True):
            parts.append(_bar(name, number, ends, scale, y))
            y += LINE
    return _svg(y + GAP, title, parts)


def alone(chart: str) -> str:
    """Return a chart as an SVG file of its own, with its stylesheet."""
    style = f"<style>{asset('colours.css')}{asset('chart.css')}</style>"
    head, rest = chart.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg">{style}{rest}\n'


def round_ticks(low: float, high: float, parts: int = 6) -> list[float]:
    """Return round numbers, evenly spaced, from `low` or just below it to `high` or just above.

    There are at most `parts` + 2 steps between them.
    """
    rough = ((high - low) or abs(high) or 1.0) / parts
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first = math.floor(low / step)
    last = max(math.ceil(high / step), first + 1)
    return [number * step for number in range(first, last + 1)]


def kept_apart(wanted: Sequence[float], low: float, high: float) -> list[float]:
    """Return heights between `low` and `high`, moved only as far as needed to be a line apart, in the same order."""
    placed = list(wanted)
    order = sorted(range(len(placed)), key=placed.__getitem__)
    edge = low
    for index in order:
        placed[index] = max(placed[index], edge)
        edge = placed[index] + LINE
    edge = high
    for index in reversed(order):
        placed[index] = min(placed[index], edge)
        edge = placed[index] - LINE
    return placed


def _axes(x: Scale, y: Scale, x_label: str, y_label: str) -> list[str]:
    parts = [f'<text class="faint" x="0" y="{FONT_SIZE}">{escaped(y_label)}</text>']
    for tick in y.ticks:
        at = f"{y.at(tick):.1f}"
        parts.append(f'<line class="grid" x1="{x.start:.1f}" x2="{x.end:.1f}" y1="{at}" y2="{at}"/>')
        parts.append(_faint(f"{tick:g}", x.start - GAP, y.at(tick), "end"))
    below = y.start + LINE
    parts += [_faint(f"{tick:g}", x.at(tick), below, "middle") for tick in x.ticks]
    return [*parts, _faint(x_label, (x.start + x.end) / 2, below + LINE, "middle")]


def _curve(curve: Curve, name: str, look: str, x: Scale, y: Scale, label_height: float) -> str:
    at = [(x.at(a), y.at(b)) for a, b in curve.points]
    line = " L".join(f"{a:.1f} {b:.1f}" for a, b in at)
    points = "".join(
        f'<circle class="point" cx="{a:.1f}" cy="{b:.1f}" r="2.5"><title>'
        f"{escaped(f'{curve.name}: {number[1]:.4g} at {number[0]:.3g}')}</title></circle>"
        for number, (a, b) in zip(curve.points, at, strict=True)
    )
    a, b = at[-1]
    label = x.end + 2 * GAP
    return (
        f'<g class="{look}">{_band(curve, x, y)}<path class="curve" d="M{line}"/>{points}'
        f'<path class="leader" d="M{a:.1f} {b:.1f} L{label - 4:.1f} {label_height:.1f}"/>'
        f'<text x="{label:.1f}" y="{label_height:.1f}" dominant-baseline="central">{escaped(name)}</text></g>'
    )


def _band(curve: Curve, x: Scale, y: Scale) -> str:
    if not curve.band:
        return ""
    ends = [(x.at(a), y.at(low), y.at(high)) for (a, _), (low, high) in zip(curve.points, curve.band, strict=True)]
    edge = [f"{a:.1f} {low:.1f}" for a, low, _ in ends] + [f"{a:.1f} {high:.1f}" for a, _, high in reversed(ends)]
    return f'<path class="band" d="M{" L".join(edge)}Z"/>'


def _look(number: int) -> str:
    """Return the CSS classes of a curve: the hue varies first, then the dashes."""
    return f"hue-{number % HUES} dash-{number // HUES % DASHES}"


def _bar(name: str, number: float, ends: tuple[float, float], scale: Scale, y: float) -> str:
    middle, width = y + LINE / 2, scale.at(number) - scale.start
    low, high = (scale.at(max(0.0, end)) for end in ends)
    spread = f'<path class="spread" d="M{low:.1f} {middle:.1f}H{high:.1f}"/>' if low < high else ""
    label = f'y="{middle:.1f}" dominant-baseline="central"'
    return (
        f'<text x="{scale.start - GAP:.1f}" {label} text-anchor="end">{escaped(shorten(name, LONGEST_NAME))}</text>'
        f'<rect class="bar" x="{scale.start:.1f}" y="{y + 2:.1f}" width="{width:.1f}" height="{LINE - 4}"/>'
        f'{spread}<text x="{high + GAP / 2:.1f}" {label}>{number:.3g}</text>'
    )


def _faint(text: str, x: float, y: float, anchor: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" dominant-baseline="central"'
    return f'<text class="faint" {place}>{escaped(text)}</text>'


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    return "\n".join([f'<svg role="img" aria-label="{escaped(title)}" {size}>', *parts, "</svg>"])
