"""Parts of offline pages: files of `assets/`, escaped text, and the hashes by which a policy allows scripts."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files


def asset(name: str) -> str:
    """Return a file of `assets/`."""
    return (files("regardant.pictures") / "assets" / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Return what a content security policy names a script or a style by."""
    return b64encode(sha256(text.encode()).digest()).decode("ascii")


def escaped(text: str) -> str:
    """Text as it may stand between tags and in attributes."""
    return escape(text.encode("utf-8", "replace").decode("utf-8"))  # half a surrogate pair cannot be written


def summary_list(summary: Sequence[tuple[str, str]]) -> str:
    """(label, value) numbers, to stand under the title."""
    return "".join(f"<div><dt>{escaped(label)}</dt><dd>{escaped(value)}</dd></div>" for label, value in summary)
