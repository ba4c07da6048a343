"""One head as a standalone SVG: the darker a cell, the harder its target word looks at that source word.

A cell's opacity is its weight, so one ink serves light and dark pages; rings are the gold links.
"""

import re
import unicodedata
from html import escape

from regardant.pictures.picture import AttentionPicture

CELL = 32
MARGIN = 24
GAP = 10  # between a word and its row or column
FONT_SIZE = 14
RING = 2.5  # stroke of a gold link
SLANT = 0.7071  # sine and cosine of the 45 degrees the source words lean
LONGEST_LABEL = 18
LEGEND = "gold link"

STYLE = """
.page { fill: #fdfcf9; stroke: #e4dfd3; }
.cell { fill: #1d4f9e; stroke: #e4dfd3; stroke-width: 1; }
.gold { fill: none; stroke: #e0780f; stroke-width: 2.5; }
text { fill: #21242b; font: 14px system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif; }
.quiet { fill: #626872; font-size: 13px; }
@media (prefers-color-scheme: dark) {
  .page { fill: #15171c; stroke: #2d313a; }
  .cell { fill: #8abaff; stroke: #2d313a; }
  .gold { stroke: #ffb14a; }
  text { fill: #e9e7e2; }
  .quiet { fill: #9ba1ac; }
}
"""

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def heat_map_svg(picture: AttentionPicture, layer: int, head: int | None) -> str:
    """A whole SVG document of one head, or with None of the mean of the layer's heads. Indices count from 0."""
    weights = picture.matrix(layer, head)
    rows, columns = weights.shape
    source = [_shorten(word) for word in picture.source]
    target = [_shorten(word) for word in picture.target]
    caption = f"Layer {layer}, {'mean of heads' if head is None else f'head {head}'}"

    left = MARGIN + max(map(_text_width, target)) + GAP
    top = MARGIN + SLANT * max(map(_text_width, source)) + 2 * GAP
    lean = max(SLANT * _text_width(word) - (columns - i - 1) * CELL for i, word in enumerate(source))
    width = left + max(columns * CELL + lean, _text_width(caption + LEGEND) + 4 * GAP) + MARGIN
    bottom = top + rows * CELL
    height = bottom + GAP + 3 * FONT_SIZE

    title = _text(f"{picture.title}: {caption.lower()}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
        f'<title id="title">{title}</title>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="10"/>',
    ]
    for column, word in enumerate(source):
        x, y = left + (column + 0.6) * CELL, top - GAP
        parts.append(f'<text transform="translate({x:.1f} {y:.1f}) rotate(-45)">{_text(word)}</text>')
    for row, word in enumerate(target):
        y = top + (row + 0.5) * CELL
        parts.append(
            f'<text x="{left - GAP:.1f}" y="{y:.1f}" text-anchor="end" dominant-baseline="central">{_text(word)}</text>'
        )
        for column in range(columns):
            weight = min(float(weights[row, column]), 1.0)
            what = f"{picture.target[row]} looks at {picture.source[column]}: {weight:.2f}"
            parts.append(
                f'<rect class="cell" x="{left + column * CELL:.1f}" y="{top + row * CELL:.1f}" '
                f'width="{CELL}" height="{CELL}" fill-opacity="{weight:.3f}"><title>{_text(what)}</title></rect>'
            )
    for column, row in sorted(picture.gold):
        parts.append(_ring(left + column * CELL, top + row * CELL, CELL))
    parts.append(_legend(left, bottom + GAP + FONT_SIZE, caption, with_gold=bool(picture.gold)))
    return "\n".join([*parts, "</svg>", ""])


def _ring(x: float, y: float, cell: float) -> str:
    inset = RING / 2
    side = cell - RING
    return f'<rect class="gold" x="{x + inset:.2f}" y="{y + inset:.2f}" width="{side}" height="{side}" rx="2.5"/>'


def _legend(x: float, y: float, caption: str, *, with_gold: bool) -> str:
    words = f'<text class="quiet" x="{x:.1f}" y="{y:.1f}" dominant-baseline="central">{caption}</text>'
    if not with_gold:
        return words
    x += _text_width(caption) + 2 * GAP
    label = f'<text class="quiet" x="{x + 22:.1f}" y="{y:.1f}" dominant-baseline="central">{LEGEND}</text>'
    return words + _ring(x, y - 8, 16) + label


def _text(text: str) -> str:
    return escape(NOT_XML.sub("\ufffd", text))


def _shorten(word: str) -> str:
    return word if len(word) <= LONGEST_LABEL else word[: LONGEST_LABEL - 1] + "…"


def _text_width(text: str) -> float:
    """Pixels at FONT_SIZE, guessed from the script: whoever opens the file brings the font."""
    return FONT_SIZE * sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.58 for c in text)
