"""A line through numbers without axes, to tell series apart at a glance."""

import base64
from collections.abc import Sequence

WIDTH, HEIGHT, EDGE = 160, 48, 3


def sparkline(values: Sequence[float]) -> str:
    """Return the data URL of an SVG: a line through at least two values, the lowest at the bottom."""
    low, high = min(values), max(values)
    across = (WIDTH - 2 * EDGE) / (len(values) - 1)
    up = (HEIGHT - 2 * EDGE) / ((high - low) or 1)
    points = " ".join(
        f"{EDGE + number * across:.1f},{HEIGHT - EDGE - (value - low) * up:.1f}" for number, value in enumerate(values)
    )
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
        f'<rect width="100%" height="100%" fill="#fdfcf9"/>'
        f'<polyline points="{points}" fill="none" stroke="#1d4f9e" stroke-width="1.5"/></svg>'
    )
    return f"data:image/svg+xml;base64,{base64.b64encode(drawing.encode()).decode()}"
