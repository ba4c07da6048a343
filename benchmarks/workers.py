"""Peers as processes that keep their models, so that their passes can be timed in turn on an otherwise idle machine."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Self

PROGRAMS = Path(__file__).parent / "peers"
ENVIRONMENTS = Path(__file__).parent / ".peers"
"""Where make installs the libraries that need one of their own."""

SETTLE = 0.3
"""Seconds before a pass: threads of the one before may spin for a while when their work is done."""

LINES_SHOWN = 15


class Peer:
    """A program of benchmarks/peers. Its environment is the driver's own, or the one of `library`.

    It sees the CPU alone unless `accelerator` is asked for. What it prints is in `folder`. Leaves with the end of that
    where the program ends before it is asked to.
    """

    def __init__(
        self,
        program: str,
        arguments: Sequence[str] = (),
        *,
        folder: Path,
        library: str | None = None,
        variables: dict[str, str] | None = None,
        accelerator: bool = False,
    ) -> None:
        python = sys.executable if library is None else str(ENVIRONMENTS / library / "bin" / "python")
        self.name = " ".join([program, *(one for one in arguments if os.sep not in one)])
        self.log = folder / f"{self.name.replace(' ', '_')}.log"
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [python, str(PROGRAMS / f"{program}.py"), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                env=os.environ | ({} if accelerator else {"CUDA_VISIBLE_DEVICES": ""}) | (variables or {}),
            )
        self.about = self._answer()

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, and the missing answer tells
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        try:
            answer: dict[str, Any] = json.loads(line)
        except json.JSONDecodeError:
            self._end(seconds=1)
            told = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
            sys.exit("\n".join([*told[-LINES_SHOWN:], f"{self.name} gave no answer but {line!r}; see {self.log}"]))
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end(seconds=60)

    def _end(self, seconds: float) -> None:
        """Ask it to end, by closing the line, and wait for so long."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


@dataclass
class Row:
    """What is timed in turn with others."""

    name: str
    peer: Peer
    request: dict[str, Any]
    readings: list[dict[str, Any]] = field(default_factory=list)

    def read(self, **changes: Any) -> dict[str, Any]:
        """One pass."""
        time.sleep(SETTLE)
        return self.peer.ask(**self.request, **changes)

    @property
    def tokens_per_second(self) -> float:
        """The median of its passes."""
        return median(reading["tokens"] / reading["seconds"] for reading in self.readings)


def interleave(rows: Iterable[Row], passes: int) -> None:
    """Pass after pass over all rows, so that whatever else the machine does falls on all alike.

    In an order drawn for each: what ran before is still felt, by up to a tenth.
    """
    rows = list(rows)
    for number in range(1, passes + 1):
        for row in Random(number).sample(rows, len(rows)):
            row.readings.append(row.read())
        progress(f"pass {number} of {passes}: {', '.join(told(row) for row in rows)}")


def told(row: Row) -> str:
    reading = row.readings[-1]
    if "tokens" not in reading:
        return row.name
    return f"{row.name} {reading['tokens'] / reading['seconds']:,.0f}"


def one_torch(peers: Iterable[Peer]) -> None:
    """Leave where the peers' torch differ: their kernels would."""
    versions = {peer.name: peer.about["versions"].get("torch") for peer in peers}
    if len({version for version in versions.values() if version}) > 1:
        sys.exit(f"the environments have different torch ({versions}): remove {ENVIRONMENTS} and make them anew")


def versions_of(peers: Iterable[Peer]) -> dict[str, str]:
    found: dict[str, str] = {}
    for peer in peers:
        found |= peer.about["versions"]
    return found


def progress(text: str) -> None:
    """What is done, for whoever waits."""
    print(text, file=sys.stderr, flush=True)
