"""Parts of offline pages: files of `assets/`, escaped text, and hashes for the content security policy."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files


def asset(name: str) -> str:
    """Return the text of a file in `assets/`."""
    return (files("regardant.pictures") / "assets" / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Return the SHA-256 hash, in base64, by which a content security policy names a script or a style."""
    return b64encode(sha256(text.encode()).digest()).decode("ascii")


def escaped(text: str) -> str:
    """Return text escaped for HTML elements and attributes."""
    return escape(text.encode("utf-8", "replace").decode("utf-8"))  # a lone surrogate cannot be encoded


def summary_list(summary: Sequence[tuple[str, str]]) -> str:
    """Return (label, value) pairs as entries of the description list under the title."""
    return "".join(f"<div><dt>{escaped(label)}</dt><dd>{escaped(value)}</dd></div>" for label, value in summary)
