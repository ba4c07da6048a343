"""Drawings as PDF, with lines and letters, for a paper. typst reads the SVG with the library that resvg is made of."""

from regardant.errors import ConfigError

TEMPLATE = """
#set document(title: sys.inputs.title, date: none)
#set page(width: auto, height: auto, margin: 0pt, fill: none)
#image(bytes(sys.inputs.drawing), format: "svg", alt: sys.inputs.title)
"""
"""A page as large as the drawing. Without a date equal drawings are equal files."""


def require_pdf() -> None:
    """Raise ConfigError without the library that writes PDF."""
    try:
        import typst  # noqa: F401  # nothing but this module needs it
    except ImportError as error:
        raise ConfigError(
            "a PDF needs typst, which is not installed: pip install 'regardant[pdf]', or keep the picture as .svg"
        ) from error


def pdf(drawing: str, *, title: str) -> bytes:
    """Return an SVG document as a PDF file of one page. Raises ConfigError without typst."""
    require_pdf()
    import typst

    return typst.compile(TEMPLATE.encode(), sys_inputs={"drawing": drawing, "title": title}, format="pdf")
