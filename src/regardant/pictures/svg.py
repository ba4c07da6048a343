"""What every drawing here is made of: words that stay words, cut to a length, and how wide they come out; shades."""

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
"""How many a drawing of many cells tells apart."""

STYLE = """
.page { fill: #fdfcf9; stroke: #e4dfd3; }
.cell { fill: #1d4f9e; stroke: #e4dfd3; stroke-width: 1; }
.gold { fill: none; stroke: #e0780f; stroke-width: 2.5; }
.shade { fill: none; stroke: #1d4f9e; }
.frame { fill: none; stroke: #e4dfd3; }
.lit { fill: #e0780f; }
.weight { stroke: #e0780f; stroke-linecap: round; }
text { fill: #21242b; font: 14px system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", Arial, sans-serif; }
.quiet { fill: #626872; font-size: 13px; }
@media (prefers-color-scheme: dark) {
  .page { fill: #15171c; stroke: #2d313a; }
  .cell { fill: #8abaff; stroke: #2d313a; }
  .gold { stroke: #ffb14a; }
  .shade { stroke: #8abaff; }
  .frame { stroke: #2d313a; }
  .lit { fill: #ffb14a; }
  .weight { stroke: #ffb14a; }
  text { fill: #e9e7e2; }
  .quiet { fill: #9ba1ac; }
}
"""

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """Text between the tags of a drawing and in its attributes, without the characters that XML lacks."""
    return markup.escaped(NOT_XML.sub("\ufffd", text))


def shorten(word: str, longest: int = LONGEST_LABEL) -> str:
    """At most so many characters, the last one an ellipsis where some are missing."""
    return word if len(word) <= longest else word[: longest - 1] + "…"


def text_width(text: str) -> float:
    """Pixels at FONT_SIZE, guessed from the script: whoever opens the file brings the font."""
    return FONT_SIZE * sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.58 for c in text)


def document(parts: Sequence[str], width: float, height: float, *, title: str) -> str:
    """Return a whole file. What would be wider than WIDEST is scaled down."""
    scale = min(1.0, WIDEST / width)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title" width="{width * scale:.0f}" '
        f'height="{height * scale:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
    )
    named = f'<title id="title">{escaped(title)}</title>'
    return "\n".join([head, named, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def shaded(weights: NDArray[np.floating[Any]], left: float, top: float, cell: float) -> list[str]:
    """Return a matrix of weights as few lines: neighbours of a shade in a row are one, and all of a shade a path."""
    runs: dict[int, list[str]] = defaultdict(list)
    for row, shades in enumerate(np.rint(weights.clip(0, 1) * SHADES).astype(int)):
        starts = np.flatnonzero(np.diff(shades, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(shades)], strict=True):
            if shades[start]:
                runs[shades[start]].append(f"M{start} {row}.5h{end - start}")
    place = f'transform="translate({left:.1f} {top:.1f}) scale({cell:.4g})"'
    paths = (f'<path stroke-opacity="{shade / SHADES:.4g}" d="{"".join(runs[shade])}"/>' for shade in sorted(runs))
    return [f'<g class="shade" {place}>', *paths, "</g>"]
