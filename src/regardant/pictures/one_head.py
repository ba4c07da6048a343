"""One head, or the mean of a layer, as a standalone SVG: a heat map of words, or the item itself under its shades."""

from regardant.pictures.graph import edges, node_names, weighted_graph
from regardant.pictures.heat_map import heat_map_svg
from regardant.pictures.item import asking, drawn_item, item_weights, key_weights, shades
from regardant.pictures.picture import AttentionPicture
from regardant.pictures.svg import FONT_SIZE, Drawing, document, escaped, page, ramp, text_width

MARGIN = 24
GAP = 10

WIDTH = 480
"""Width of the item in pixels, or less if it would be taller than HEIGHT."""

HEIGHT = 640
LEAST_WIDTH = 160


def head_svg(picture: AttentionPicture, layer: int, head: int | None) -> Drawing:
    """Return an SVG document of one head, or of the mean of the layer's heads for None. Indices count from 0.

    The drawing is a heat map, or the item if the keys are on a grid or are nodes of a graph.
    """
    return (heat_map_svg if picture.source_layout is None else _over_item)(picture, layer, head)


def _over_item(picture: AttentionPicture, layer: int, head: int | None) -> Drawing:
    layout = picture.source_layout
    assert layout is not None
    weights, caption = item_weights(picture, layer, head), picture.head_name(layer, head)
    remarks = [f"Shades: {asking(picture)}."]
    if beside := picture.source[: len(picture.source) - len(layout.labels)]:
        share = float(key_weights(picture, layer, head)[: len(beside)].sum())
        remarks.append(f"{share:.0%} of the attention is on {', '.join(beside)}, which is not drawn.")
    if layout.places:
        remarks.append("Lines: attention along an edge, relative to the largest.")
    item = max(LEAST_WIDTH, min(WIDTH, HEIGHT / layout.height))
    top = float(MARGIN + FONT_SIZE + GAP)
    texts = [f'<text class="title" x="{MARGIN}" y="{MARGIN + FONT_SIZE}">{escaped(caption)}</text>']
    for remark in remarks:
        top += FONT_SIZE + 4
        texts.append(f'<text class="quiet" x="{MARGIN}" y="{top:.1f}">{escaped(remark)}</text>')
    top += 2 * GAP
    if layout.places:
        parts = [edges(layout, MARGIN, top, item)]
        parts += weighted_graph(layout, picture.matrix(layer, head), weights, MARGIN, top, item)
        parts += node_names(layout, MARGIN, top, item)  # above the lines
    else:
        parts = drawn_item(layout, MARGIN, top, item)
        parts += shades(weights, layout, MARGIN, top, item)
    bottom = top + item * layout.height
    scale, scale_width = ramp(MARGIN, bottom + 2 * GAP + 2, "of the attention", f"{weights.max():.1%}", of_cells=False)
    width = MARGIN + max(item, scale_width, 1.1 * text_width(caption), *map(text_width, remarks)) + MARGIN
    height = bottom + 3 * GAP + MARGIN
    return document([page(width, height), *texts, *parts, scale], width, height, title=f"{picture.title}: {caption}")
