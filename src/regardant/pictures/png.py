"""Drawings as PNG. resvg renders the SVG itself, so that both always agree, with the fonts of the machine."""

DENSITY = 2  # image pixels per SVG pixel, for high-density screens


def png(drawing: str) -> bytes:
    """Return an SVG document as a PNG file."""
    import resvg_py  # nothing but this needs it

    return bytes(resvg_py.svg_to_bytes(svg_string=drawing, zoom=DENSITY))
