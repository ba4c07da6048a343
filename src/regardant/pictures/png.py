"""Drawings as pixels. resvg renders the SVG itself, so that the two never differ, with the fonts of the machine."""

DENSITY = 2  # pixels of a drawing's pixel, for today's screens


def png(drawing: str) -> bytes:
    """Return an SVG document as a PNG file."""
    import resvg_py  # nothing but this needs it

    return bytes(resvg_py.svg_to_bytes(svg_string=drawing, zoom=DENSITY))
