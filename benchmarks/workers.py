"""Peers: processes that keep their models, so that their passes can be timed in turn on an otherwise idle machine."""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Self

PROGRAMS = Path(__file__).parent / "peers"
ENVIRONMENTS = Path(__file__).parent / ".peers"
"""Folder in which make installs other libraries, each in an environment of its own."""

SETTLE = 0.3
"""Seconds before a pass: threads of the previous peer may spin for a while after their work."""

PROBES = 3
"""Readings of each of a peer's settings, of which the fastest counts."""

KEEP_FREED_MEMORY = {
    "GLIBC_TUNABLES": ":".join(
        [
            "glibc.malloc.mmap_threshold=4294967296",
            "glibc.malloc.trim_threshold=17179869184",
            "glibc.malloc.top_pad=268435456",
        ]
    )
}
"""Variables by which glibc keeps the freed memory of a peer. By default glibc gives large blocks back to the system
after each use, which costs other libraries up to half of a training step. Regardant asks glibc to keep them."""

LINES_SHOWN = 15


class Peer:
    """A program of benchmarks/peers, in the driver's environment or in that of `library`.

    The program sees only the CPU unless `accelerator` is set, and keeps freed memory unless `variables` of its
    environment are given, as {} for a library as it comes. Its output is logged in `folder`. If the program ends before
    its stdin is closed, the driver exits with the last lines of the log.
    """

    def __init__(
        self,
        program: str,
        arguments: Sequence[str] = (),
        *,
        folder: Path,
        library: str | None = None,
        variables: Mapping[str, str] = KEEP_FREED_MEMORY,
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
                env=os.environ | ({} if accelerator else {"CUDA_VISIBLE_DEVICES": ""}) | dict(variables),
            )
        self.about = self._answer()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and return the answer."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the program has ended; the missing answer shows it
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
            logged = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
            sys.exit("\n".join([*logged[-LINES_SHOWN:], f"{self.name} gave no answer but {line!r}; see {self.log}"]))
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end(seconds=60)

    def _end(self, seconds: float) -> None:
        """Close stdin, which ends the program, and kill it after `seconds`."""
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
    """One entry of a comparison: a peer, its request and its timed passes."""

    name: str
    peer: Peer
    request: dict[str, Any]
    readings: list[dict[str, Any]] = field(default_factory=list)

    def read(self, **changes: Any) -> dict[str, Any]:
        """Time one pass."""
        time.sleep(SETTLE)
        return self.peer.ask(**self.request, **changes)

    @property
    def speeds(self) -> list[float]:
        """Tokens a second of each pass."""
        return [reading["tokens"] / reading["seconds"] for reading in self.readings]

    @property
    def tokens_per_second(self) -> float:
        """Median over the passes."""
        return median(self.speeds)


def settings(name: str, peer: Peer, request: dict[str, Any], choices: Mapping[str, Sequence[str]]) -> list[Row]:
    """Return a row of a peer for each combination of the values that fields of its requests may have."""
    rows = []
    for values in itertools.product(*choices.values()):
        setting = " and ".join(f"{value} {field}" for field, value in zip(choices, values, strict=True))
        chosen = request | dict(zip(choices, values, strict=True))
        rows.append(Row(f"{name}, {setting}" if setting else name, peer, chosen))
    return rows


def fastest(candidates: Sequence[Row], warm_up: dict[str, Any], probe: dict[str, Any]) -> tuple[Row, dict[str, float]]:
    """Return the fastest of a peer's settings, and tokens a second by their names. `warm_up` and `probe` change the
    requests of the settings. They are read in turn, and the best reading of each counts: other load only adds time. A
    single setting is not read."""
    if len(candidates) == 1:
        return candidates[0], {}
    for row in candidates:
        row.peer.ask(**row.request | warm_up)
    speeds = {row.name: 0.0 for row in candidates}
    for _ in range(PROBES):
        for row in candidates:
            answer = Row(row.name, row.peer, row.request | probe).read()
            speeds[row.name] = max(speeds[row.name], answer["tokens"] / answer["seconds"])
    return max(candidates, key=lambda row: speeds[row.name]), speeds


def interleave(rows: Iterable[Row], passes: int) -> None:
    """Time pass after pass over all rows, so that other load on the machine affects all rows alike.

    Each pass has a random order: a row is up to a tenth slower after some rows than after others.
    """
    rows = list(rows)
    for number in range(1, passes + 1):
        for row in Random(number).sample(rows, len(rows)):
            row.readings.append(row.read())
        progress(f"pass {number} of {passes}: {', '.join(latest(row) for row in rows)}")


def latest(row: Row) -> str:
    """Format the last pass of a row."""
    reading = row.readings[-1]
    if "tokens" not in reading:
        return row.name
    return f"{row.name} {reading['tokens'] / reading['seconds']:,.0f}"


def one_torch(peers: Iterable[Peer]) -> None:
    """Exit if the peers have different versions of torch, and so different kernels."""
    versions = {peer.name: peer.about["versions"].get("torch") for peer in peers}
    if len({version for version in versions.values() if version}) > 1:
        sys.exit(f"the environments have different torch ({versions}): remove {ENVIRONMENTS} and run make again")


def versions_of(peers: Iterable[Peer]) -> dict[str, str]:
    """Return the versions of all libraries that the peers use."""
    found: dict[str, str] = {}
    for peer in peers:
        found |= peer.about["versions"]
    return found


def progress(text: str) -> None:
    """Print progress to stderr."""
    print(text, file=sys.stderr, flush=True)
