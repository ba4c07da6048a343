"""Refusals of files that are no UTF-8 lines: UTF-16, UTF-32, NUL bytes, line ends of a carriage return alone."""

from pathlib import Path

from regardant.errors import DataError

UTF8_BOM = b"\xef\xbb\xbf"

BYTE_ORDER_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
"""The longer ones first, since one begins like a shorter one."""

START = 4096
"""Bytes by which UTF-16 without a byte order mark is told from other bytes."""


def require_utf8(place: Path | str, start: bytes) -> None:
    """Raise DataError if the first bytes of a file are those of UTF-16 or UTF-32, with or without a byte order mark."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if start.startswith(mark):
            found = f"{encoding} (byte order mark {mark.hex(' ').upper()})"
            raise DataError(f"{place} is {found}, not UTF-8: {_conversion(place, encoding)}")
    start = start[:START]
    even, odd = start[::2].count(0), start[1::2].count(0)
    # A Latin letter is a NUL and its code, and a space or line end is in any language.
    if max(even, odd) > max(1, 8 * min(even, odd)) and 32 * max(even, odd) > len(start):
        encoding = "UTF-16BE" if even > odd else "UTF-16LE"
        raise DataError(
            f"{place} looks like {encoding} (every other byte is NUL), not UTF-8: {_conversion(place, encoding)}"
        )


def require_no_nul(place: Path | str, line: int, raw: bytes) -> None:
    """Raise DataError if some lines of a file, the first of them number `line`, contain a NUL byte."""
    at = raw.find(b"\0")
    if at >= 0:
        line += raw.count(b"\n", 0, at)
        raise DataError(
            f"{place} line {line:,} contains a NUL byte, which no text has: {_conversion(place, 'UTF-16')}, if it is "
            "UTF-16, or remove the bytes with tr -d '\\000'"
        )


def carriage_returns_alone(place: Path | str) -> DataError:
    """Return the refusal of a file without a line feed whose lines end in carriage returns."""
    return DataError(
        f"{place} has carriage returns and no line feed, so all of it is one line: convert it with "
        f"tr '\\r' '\\n' < {place} > NEW"
    )


def _conversion(place: Path | str, encoding: str) -> str:
    return f"convert it with iconv -f {encoding} -t UTF-8 {place} > NEW"
