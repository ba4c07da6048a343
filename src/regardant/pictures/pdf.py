"""Drawings as vector PDF, for papers. typst reads SVG with the library on which resvg is built."""

from regardant.errors import ConfigError

TEMPLATE = """
#set document(title: sys.inputs.title, date: none)
#set page(width: auto, height: auto, margin: 0pt, fill: none)
#image(bytes(sys.inputs.drawing), format: "svg", alt: sys.inputs.title)
"""
"""Typst source of a page as large as the drawing, without a date, so that equal drawings give equal files."""


def require_pdf() -> None:
    """Raise ConfigError if typst, which writes PDF, is not installed."""
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
