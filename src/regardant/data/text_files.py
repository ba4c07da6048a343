"""Text files, plain, .gz or .zst: lines of sentence pairs, lines of one file, or a whole text.

A line ends at a line feed and nowhere else: U+2028, U+0085 or a form feed inside a sentence would otherwise shift one
side of a corpus against the other. A line that cannot be decoded becomes a `Fault` in its record, and the next line is
read. A file that is not UTF-8 at all, or has NUL bytes, is refused.
"""

import codecs
import io
import os
import re
from collections.abc import Iterator
from enum import Enum
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from regardant.errors import DataError, first_line

BYTES_AT_ONCE = 1 << 20
"""Number of bytes of a text that are read at a time."""

UTF8_BOM = b"\xef\xbb\xbf"

BYTE_ORDER_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
"""Encodings by their byte order mark. The longer marks come first, since they begin like the shorter ones."""

LONGEST_LINE = 100_000
"""Maximum characters of a line to translate: thousands of sentences. Longer input is truncated, or refused."""

HALF_PAIR = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which JSON can spell and UTF-8 cannot."""

START = 4096
"""Number of first bytes that are checked for UTF-16 without a byte order mark."""


class Fault(Enum):
    """Reason why one side of a pair has no text."""

    BAD_ENCODING = "bad_encoding"
    """Bytes that are not valid UTF-8."""

    NUL = "nul_character"
    """NUL characters in the line, as in UTF-16 that is read as UTF-8."""

    MISSING = "missing"
    """Row that is too short, lacks the key or holds a null."""


class PairRecord(NamedTuple):
    """Pair of texts as read from files, a table or a dataset."""

    line: int
    """Number, from 1, of the line where the pair starts, or of its row in a dataset or parquet file."""

    source: str | Fault
    target: str | Fault


def place(root: str, name: str) -> Path:
    """Return the path of a file that a recipe names, relative to `root`, where ~ and ${VARIABLE} are expanded.

    An absolute path is returned unchanged. Raises DataError for a variable that is not set.
    """
    if Path(name).is_absolute():
        return Path(name)
    expanded = os.path.expandvars(root)
    if missing := re.search(r"\$\{?(\w+)", expanded):
        name = missing[1]
        raise DataError(f"data.root names {name}, which is not set: export {name}=FOLDER, or --set data.root=FOLDER")
    return Path(expanded).expanduser() / name


def read_text_files(source: Path, target: Path) -> Iterator[PairRecord]:
    """Yield the pairs of two files: line n of one translates line n of the other.

    Raises DataError at once for a missing file, and at the end if one file is longer.
    """
    require_file(source)
    require_file(target)
    return _aligned_lines(source, target)


def read_text(path: Path) -> Iterator[str]:
    """Yield a text with every space and line end, in pieces that end with white space if they contain any.

    A byte order mark at the start is left out. Raises DataError at once for a missing file, and during reading for
    bytes that are not valid UTF-8.
    """
    require_file(path)
    return _pieces(path)


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file. Raises DataError for a file or a line that cannot be read."""
    require_file(path)
    for number, raw in enumerate(text_lines(path), 1):
        text = decode(raw)
        if isinstance(text, Fault):
            raise DataError(f"{path} line {number:,} is not valid UTF-8: correct the line")
        yield text


def require_utf8(place: Path | str, start: bytes) -> None:
    """Raise DataError if the first bytes of a file are those of UTF-16 or UTF-32, with or without a byte order mark."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if start.startswith(mark):
            found = f"{encoding} (byte order mark {mark.hex(' ').upper()})"
            raise DataError(f"{place} is {found}, not UTF-8: {_conversion(place, encoding)}")
    start = start[:START]
    even, odd = start[::2].count(0), start[1::2].count(0)
    # In UTF-16 a Latin letter has a NUL byte, and so have the spaces and line ends of any language.
    if max(even, odd) > max(1, 8 * min(even, odd)) and 32 * max(even, odd) > len(start):
        encoding = "UTF-16BE" if even > odd else "UTF-16LE"
        raise DataError(
            f"{place} looks like {encoding} (every other byte is NUL), not UTF-8: {_conversion(place, encoding)}"
        )


def require_no_nul(place: Path | str, line: int, raw: bytes) -> None:
    """Raise DataError if `raw`, the bytes of a file from line `line` on, contains a NUL byte."""
    at = raw.find(b"\0")
    if at >= 0:
        line += raw.count(b"\n", 0, at)
        raise DataError(
            f"{place} line {line:,} contains a NUL byte, which no text has: {_conversion(place, 'UTF-16')}, if it is "
            "UTF-16, or remove the bytes with tr -d '\\000'"
        )


def carriage_returns_alone(place: Path | str) -> DataError:
    """Return the error for a file without a line feed whose lines end in carriage returns."""
    return DataError(
        f"{place} has carriage returns and no line feed, so all of it is one line: convert it with "
        f"tr '\\r' '\\n' < {place} > NEW"
    )


def _conversion(place: Path | str, encoding: str) -> str:
    return f"convert it with iconv -f {encoding} -t UTF-8 {place} > NEW"


def require_file(path: Path) -> None:
    """Raise DataError unless the path is a file; the message suggests a file of a similar name."""
    if os.path.isdir(path):  # False for a name that is too long, for which Path.is_dir raises OSError
        raise DataError(f"{path} is a folder, where a file of sentences is needed; name a file in it")
    if "\0" in str(path):
        raise DataError(f"the path {str(path)!r} contains a NUL character, which no path may: correct it")
    if os.path.exists(path) and not os.path.isfile(path):
        raise DataError(f"{path} is a device or a pipe, which cannot be read twice: write it to a file first")
    if not os.path.isfile(path):
        raise DataError(f"there is no file {path}; {near_names(path)}")


def near_names(path: Path) -> str:
    """Return the end of a message about a missing file: a file of a similar name, or that there is none."""
    if not os.path.isdir(path.parent):
        return f"there is no folder {path.parent} either; paths start at the current folder or at `root`"
    from regardant.config.did_you_mean import did_you_mean  # deferred: imports pydantic, which would slow `--help`

    near = did_you_mean(path.name, [entry.name for entry in path.parent.iterdir()]).removeprefix("; ")
    return near or f"nothing in {path.parent} has a name like it"


def decode(raw: bytes) -> str | Fault:
    """Return the text of a line, or the reason why it has none."""
    if b"\0" in raw:
        return Fault.NUL
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Fault.BAD_ENCODING


def require_whole_characters(where: object, text: str) -> None:
    """Raise DataError for a text with half of a surrogate pair."""
    if half := HALF_PAIR.search(text):
        raise DataError(f"{where} has half of a surrogate pair, \\u{ord(half[0]):04x}: write the whole character")


def unreadable_cell(path: Path, line: int, *cells: str | Fault) -> DataError:
    """Return the error for the first of the cells of a line that has no text."""
    fault = next(cell for cell in cells if isinstance(cell, Fault))
    return DataError(f"{path} line {line:,}: {_REMEDIES[fault]}")


_REMEDIES = {
    Fault.BAD_ENCODING: "its text is not UTF-8: save the file in UTF-8",
    Fault.NUL: "its text has NUL characters: remove them",
    Fault.MISSING: "a cell is missing: complete the line or leave it out",
}


def text_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file as bytes, without line ends. Raises DataError for a file that cannot be read."""
    import pyarrow as pa

    try:
        # Arrow's decompressors continue across frames and refuse a truncated file; zstandard's do neither.
        with pa.input_stream(path, compression="detect") as stream, io.BufferedReader(stream) as lines:
            require_utf8(path, lines.peek())
            for number, line in enumerate(lines, 1):
                require_no_nul(path, number, line)
                text = line.removeprefix(UTF8_BOM) if number == 1 else line
                if number == 1 and b"\r" in line[:-1] and not line.endswith(b"\n"):
                    raise carriage_returns_alone(path)
                yield text.removesuffix(b"\n").removesuffix(b"\r")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {first_line(error)}; is it whole, with the right suffix?") from error


def _pieces(path: Path) -> Iterator[str]:
    decoder, lines, waiting, returns = codecs.getincrementaldecoder("utf-8-sig")(), 1, "", 0
    try:
        with open_text(path) as stream:
            for number, raw in enumerate(iter(lambda: stream.read(BYTES_AT_ONCE), b"")):
                if number == 0:
                    require_utf8(path, raw)
                require_no_nul(path, lines, raw)
                text = waiting + decoder.decode(raw)
                lines, returns = lines + raw.count(b"\n"), returns + raw.count(b"\r")
                # Normalisation and lower-casing never depend on characters across white space.
                end = max(text.rfind("\n"), text.rfind(" ")) + 1 or len(text)
                waiting = text[end:]
                yield text[:end]
        waiting += decoder.decode(b"", final=True)
        if returns and lines == 1:
            raise carriage_returns_alone(path)
        if waiting:
            yield waiting
    except UnicodeDecodeError as error:
        line = lines + error.object[: error.start].count(b"\n")
        raise DataError(f"{path} line {line:,} is not valid UTF-8: correct the line") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {first_line(error)}; is it whole, with the right suffix?") from error


def open_text(path: Path) -> io.BufferedReader:
    """Open a file, decompressed if it is .gz or .zst. Raises OSError."""
    if path.suffix not in (".gz", ".zst"):
        return path.open("rb")
    import pyarrow as pa  # a plain file does not wait for this import

    return io.BufferedReader(pa.input_stream(path, compression="detect"))


def _aligned_lines(source: Path, target: Path) -> Iterator[PairRecord]:
    sources, targets = text_lines(source), text_lines(target)
    for number, (left, right) in enumerate(zip_longest(sources, targets), 1):
        if left is None or right is None:
            num_sources, num_targets = (
                number - (line is None) + sum(1 for _ in rest) for line, rest in ((left, sources), (right, targets))
            )
            raise DataError(
                f"{source} has {num_sources:,} lines and {target} has {num_targets:,}; "
                "line n of one must translate line n of the other"
            )
        yield PairRecord(number, decode(left), decode(right))
