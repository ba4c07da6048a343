"""Lines in and out: results to stdout, all else to stderr. A line ends at a line feed and nowhere else."""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, Self, TypeVar

from regardant.data.text_files import UTF8_BOM, require_utf8

Item = TypeVar("Item")


class Progress:
    """Counts items on a line of stderr that is rewritten once a second, if stderr is a terminal and not `hidden`."""

    def __init__(self, *, hidden: bool) -> None:
        self.hidden = hidden or not sys.stderr.isatty()
        self.started = self.shown = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.shown > self.started:  # erase to the end of the line
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def counted(self, items: Iterable[Item]) -> Iterator[Item]:
        """Return the items as they come."""
        for number, item in enumerate(items, 1):
            yield item
            now = time.monotonic()
            if not self.hidden and now >= self.shown + 1:
                self.shown = now
                line = f"{number:,} items, {number / (now - self.started):,.0f} a second"
                print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)


def read_lines(raw: Iterable[bytes], place: str = "") -> Iterator[str]:
    for number, line in enumerate(raw, 1):
        if number == 1:
            require_utf8(place.strip() or "stdin", line)
        text = line.removeprefix(UTF8_BOM) if number == 1 else line
        text = text.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield text.decode()
        except UnicodeDecodeError:
            say(f"{place}line {number}: not valid UTF-8, read with replacement characters")
            yield text.decode(errors="replace")


def as_json_line(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)


def print_json(content: Any) -> None:
    print(as_json_line(content))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def give_up_stdout() -> None:
    """Python flushes stdout once more on its way out, and would complain once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
