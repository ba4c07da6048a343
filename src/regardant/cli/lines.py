"""Input and output of lines: results to stdout, all else to stderr. Only a line feed ends a line."""

import io
import json
import os
import reprlib
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar

from regardant.data.text_files import UTF8_BOM, carriage_returns_alone, open_text, require_utf8
from regardant.errors import DataError, first_line
from regardant.files import write_atomically

Item = TypeVar("Item")

MOST_BYTES = 1 << 22
"""Maximum size of a line [bytes]. /dev/zero is a line without an end."""


class Progress:
    """Counter of items on a line of stderr, rewritten once a second, if stderr is a terminal and not `hidden`."""

    def __init__(self, *, hidden: bool, what: str = "items") -> None:
        self.what = what
        self.hidden = hidden or not sys.stderr.isatty()
        self.started = self.shown = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.shown > self.started:  # erase to the end of the line
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def counted(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items unchanged, and count them."""
        for number, item in enumerate(items, 1):
            yield item
            now = time.monotonic()
            if not self.hidden and now >= self.shown + 1:
                self.shown = now
                rate = number / (now - self.started)
                line = f"{number:,} {self.what}, {f'{rate:,.0f}' if rate >= 1 else f'{rate:.1g}'} a second"
                print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)


def read_lines(raw: Iterable[bytes], place: str = "") -> Iterator[str]:
    """Yield the lines of a stream, or of byte strings of one line each. Raises DataError for input that is no text."""
    lines = _lines_of(raw, place.strip() or "stdin") if isinstance(raw, io.IOBase) else raw
    for number, line in enumerate(lines, 1):
        if number == 1:
            require_utf8(place.strip() or "stdin", line)
        text = line.removeprefix(UTF8_BOM) if number == 1 else line
        text = text.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield text.decode()
        except UnicodeDecodeError:
            log(f"{place}line {number}: not valid UTF-8, read with replacement characters")
            yield text.decode(errors="replace")


def as_text(argument: str) -> str:
    """Return an argument of the command line as text. Bytes that are not valid UTF-8, which Python decodes as lone
    surrogates, become replacement characters."""
    text = argument.encode(errors="surrogateescape").decode(errors="replace")
    if text != argument:
        log(f"{reprlib.repr(text)}: not valid UTF-8, read with replacement characters")
    return text


def read_arguments(arguments: Iterable[str]) -> Iterator[str]:
    """Return arguments of the command line as `read_lines` returns lines."""
    return read_lines(as_text(argument).encode() for argument in arguments)


def stdin() -> BinaryIO:
    """Return standard input. Raises DataError where it is closed."""
    if sys.stdin is None:
        raise DataError("stdin is closed, and no text was given: give a text, or redirect a file with < FILE")
    return sys.stdin.buffer


def file_lines(option: str, file: Path) -> Iterator[str]:
    """Yield the lines of an option's file, plain, .gz or .zst. Raises DataError for one that cannot be read."""
    try:
        with open_text(file) as raw:
            yield from read_lines(raw, f"{file} ")
    except OSError as error:
        reason = error.strerror or first_line(error)
        raise DataError(f"{option} {file} cannot be read ({reason}): give a file with one item a line") from error


def _lines_of(stream: Any, place: str) -> Iterator[bytes]:
    """Yield the lines of a stream. Raises DataError for one without an end in sight."""
    number = 0
    while line := stream.readline(MOST_BYTES + 1):
        number += 1
        if len(line) > MOST_BYTES:
            raise DataError(f"{place} line {number:,} is longer than {MOST_BYTES:,} bytes: divide the text into lines")
        if number == 1 and b"\r" in line[:-1] and not line.endswith(b"\n"):
            raise carriage_returns_alone(place)
        yield line


def as_json_line(content: Any) -> str:
    """Return content as JSON on one line, with characters of all scripts as they are."""
    return json.dumps(content, ensure_ascii=False)


def print_json(content: Any) -> None:
    """Print content to stdout as JSON on one line."""
    print(as_json_line(content))


def log(text: str) -> None:
    """Print a line to stderr."""
    print(text, file=sys.stderr, flush=True)


def log_on_terminal(text: str) -> None:
    """Print a message of progress to stderr if it is a terminal."""
    if sys.stderr.isatty():
        log(text)


def put_lines(lines: Iterable[str], output: Path | None) -> None:
    """Print lines as they come, or write them to a file, all at the end."""
    if output is None:
        for line in lines:
            print(line)
        return
    with Progress(hidden=False) as progress:
        write_output(output, "".join(line + "\n" for line in progress.counted(lines)))


def write_output(output: Path, text: str) -> None:
    """Write the file of --output, whole or not at all."""
    # Bytes of file names that are not UTF-8 become escapes, as on stdout.
    write_atomically(output, text.encode(errors="backslashreplace"))
    log(f"wrote {output}")


def open_closed_streams() -> None:
    """Open /dev/null in place of standard streams that are closed: the next file would get their descriptors, and be
    written into by mistake. Printing to a closed stdout raises OSError, as on a full disk."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def give_up_stdout() -> None:
    """Redirect stdout to /dev/null: Python flushes stdout at exit, and would report the error once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
