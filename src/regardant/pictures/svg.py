"""Parts of every drawing: text, its estimated width and truncation, and shades."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regardant.pictures import markup

FONT_SIZE = 14
LONGEST_LABEL = 18

WIDEST = 2400  # pixels

SHADES = 16
"""Number of shades in a drawing of many cells."""

DARKEST = 0.75
"""Opacity of the largest weight over an item, which stays visible below it."""

RAMP_STEP = 6
"""Width of one shade of a scale, in pixels."""

NARROW, WIDE = frozenset(" .,:;'!|()[]fijlrtI-/"), frozenset("mwMW@%—…<>+=~&#")
"""Characters narrower and wider than others."""

STYLE = """
.drawing .page { fill: #fdfcf9; stroke: #e4dfd3; }
.drawing .cell { fill: #1d4f9e; stroke: #e4dfd3; stroke-width: 1; }
.drawing .ramp { fill: #1d4f9e; }
.drawing .gold { fill: none; stroke: #e0780f; stroke-width: 2.5; }
.drawing .shade { fill: none; stroke: #1d4f9e; }
.drawing .frame { fill: none; stroke: #e4dfd3; }
.drawing .lit { fill: #e0780f; }
.drawing .weight { stroke: #e0780f; stroke-linecap: round; }
.drawing text { fill: #21242b; font-size: 14px; }
.drawing text { font-family: system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", Arial, sans-serif; }
.drawing .name { font-size: 11px; paint-order: stroke; stroke: #fdfcf9; stroke-width: 3px; }
.drawing .title { font-weight: bold; }
.drawing .quiet { fill: #626872; font-size: 13px; }
@media (prefers-color-scheme: dark) {
  .drawing .page { fill: #15171c; stroke: #2d313a; }
  .drawing .cell { fill: #8abaff; stroke: #2d313a; }
  .drawing .ramp { fill: #8abaff; }
  .drawing .gold { stroke: #ffb14a; }
  .drawing .shade { stroke: #8abaff; }
  .drawing .frame { stroke: #2d313a; }
  .drawing .lit { fill: #ffb14a; }
  .drawing .weight { stroke: #ffb14a; }
  .drawing text { fill: #e9e7e2; }
  .drawing .name { stroke: #15171c; }
  .drawing .quiet { fill: #9ba1ac; }
}
"""
"""CSS rules, for drawings only: a notebook has several drawings and other output in one document."""

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """Return text escaped for SVG elements and attributes; characters that XML does not allow are replaced."""
    return markup.escaped(NOT_XML.sub("\ufffd", text))


class Drawing(str):
    """An SVG document, which a notebook shows as a picture."""

    def _repr_svg_(self) -> str:
        return str(self)


def shorten(word: str, longest: int = LONGEST_LABEL) -> str:
    """Return a word cut to `longest` characters, the last of which is an ellipsis if the word was longer."""
    return word if len(word) <= longest else word[: longest - 1] + "…"


def text_width(text: str) -> float:
    """Return the width of a text at FONT_SIZE in pixels, estimated from DejaVu Sans, which is a wide font."""
    return FONT_SIZE * sum(map(_em, text))


def fitted(text: str, width: float) -> str:
    """Return a text cut to `width` pixels at FONT_SIZE, with an ellipsis in place of the rest."""
    if text_width(text) <= width:
        return text
    kept = len(text)
    while kept and text_width(text[:kept] + "…") > width:
        kept -= 1
    return text[:kept].rstrip() + "…"


def label(word: str, place: str, longest: int = LONGEST_LABEL) -> str:
    """Return a word as a text element with the attributes `place`; the full word is its title if it is cut."""
    cut = shorten(word, longest)
    title = "" if cut == word else f"<title>{escaped(word)}</title>"
    return f"<text {place}>{title}{escaped(cut)}</text>"


def document(parts: Sequence[str], width: float, height: float, *, title: str) -> Drawing:
    """Return an SVG document. A drawing wider than WIDEST is scaled down."""
    scale = min(1.0, WIDEST / width)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" role="img" aria-label="{escaped(title)}" '
        f'width="{width * scale:.0f}" height="{height * scale:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
    )
    named = f"<title>{escaped(title)}</title>"
    return Drawing("\n".join([head, named, f"<style>{STYLE}</style>", *parts, "</svg>", ""]))


def page(width: float, height: float) -> str:
    """Return the background of a drawing."""
    return f'<rect class="page" x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="10"/>'


def ramp(x: float, y: float, name: str, most: str, *, of_cells: bool) -> tuple[str, float]:
    """Return the scale of shades from 0% to `most`, with its name, vertically centred on y; and its width."""
    look, darkest = ("ramp", 1.0) if of_cells else ("lit", DARKEST)
    left = x + text_width("0%") + 6
    steps = (
        f'<path class="{look}" d="M{left + step * RAMP_STEP:.1f} {y - 6:.1f}h{RAMP_STEP}v12h-{RAMP_STEP}z" '
        f'fill-opacity="{darkest * (step + 0.5) / SHADES:.3f}"/>'
        for step in range(SHADES)
    )
    right = left + SHADES * RAMP_STEP
    words = f"{most} {name}"
    place = f'class="quiet" y="{y:.1f}" dominant-baseline="central"'
    frame = f'<path class="frame" d="M{left:.1f} {y - 6:.1f}H{right:.1f}v12H{left:.1f}z"/>'
    drawn = (
        f'<text {place} x="{x:.1f}">0%</text>{"".join(steps)}{frame}<text {place} x="{right + 6:.1f}">{words}</text>'
    )
    return f'<g class="legend">{drawn}</g>', right + 6 + text_width(words) - x


def shaded(weights: NDArray[np.floating[Any]], left: float, top: float, cell: float) -> list[str]:
    """Return a matrix of weights as one path per shade, in which adjacent cells of a row are one line."""
    runs: dict[int, list[str]] = defaultdict(list)
    for row, shades in enumerate(np.rint(weights.clip(0, 1) * SHADES).astype(int)):
        starts = np.flatnonzero(np.diff(shades, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(shades)], strict=True):
            if shades[start]:
                runs[shades[start]].append(f"M{start} {row}.5h{end - start}")
    place = f'transform="translate({left:.1f} {top:.1f}) scale({cell:.4g})"'
    paths = (f'<path stroke-opacity="{shade / SHADES:.4g}" d="{"".join(runs[shade])}"/>' for shade in sorted(runs))
    return [f'<g class="shade" {place}>', *paths, "</g>"]


def _em(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in NARROW:
        return 0.4
    return 1.0 if letter in WIDE else 0.7 if letter.isupper() else 0.62
