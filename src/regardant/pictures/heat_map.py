"""One head as a standalone SVG: the darker a cell, the harder its target word looks at that source word.

A cell's opacity is its weight, so one ink serves light and dark pages; rings are the gold links.
"""

from regardant.pictures.picture import AttentionPicture
from regardant.pictures.svg import FONT_SIZE, escaped, shorten, text_width

CELL = 32
MARGIN = 24
GAP = 10  # between a word and its row or column
RING = 2.5  # stroke of a gold link
SLANT = 0.7071  # sine and cosine of the 45 degrees the source words lean
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


def heat_map_svg(picture: AttentionPicture, layer: int, head: int | None) -> str:
    """A whole SVG document of one head, or with None of the mean of the layer's heads. Indices count from 0."""
    weights = picture.matrix(layer, head)
    rows, columns = weights.shape
    source = [shorten(word) for word in picture.source]
    target = [shorten(word) for word in picture.target]
    caption = f"Layer {layer}, {'mean of heads' if head is None else f'head {head}'}"

    left = MARGIN + max(map(text_width, target)) + GAP
    top = MARGIN + SLANT * max(map(text_width, source)) + 2 * GAP
    lean = max(SLANT * text_width(word) - (columns - i - 1) * CELL for i, word in enumerate(source))
    width = left + max(columns * CELL + lean, text_width(caption + LEGEND) + 4 * GAP) + MARGIN
    bottom = top + rows * CELL
    height = bottom + GAP + 3 * FONT_SIZE

    title = escaped(f"{picture.title}: {caption.lower()}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
        f'<title id="title">{title}</title>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="10"/>',
    ]
    for column, word in enumerate(source):
        x, y = left + (column + 0.6) * CELL, top - GAP
        parts.append(f'<text transform="translate({x:.1f} {y:.1f}) rotate(-45)">{escaped(word)}</text>')
    for row, word in enumerate(target):
        y = top + (row + 0.5) * CELL
        parts.append(
            f'<text x="{left - GAP:.1f}" y="{y:.1f}" text-anchor="end" dominant-baseline="central">'
            f"{escaped(word)}</text>"
        )
        for column in range(columns):
            weight = min(float(weights[row, column]), 1.0)
            what = f"{picture.target[row]} looks at {picture.source[column]}: {weight:.2f}"
            parts.append(
                f'<rect class="cell" x="{left + column * CELL:.1f}" y="{top + row * CELL:.1f}" '
                f'width="{CELL}" height="{CELL}" fill-opacity="{weight:.3f}"><title>{escaped(what)}</title></rect>'
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
    x += text_width(caption) + 2 * GAP
    label = f'<text class="quiet" x="{x + 22:.1f}" y="{y:.1f}" dominant-baseline="central">{LEGEND}</text>'
    return words + _ring(x, y - 8, 16) + label
