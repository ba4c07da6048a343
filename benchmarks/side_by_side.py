"""Benchmarks that time engines in turn: their options, the last lines of their tables, and their results."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .bars import conclude, lines
from .records import Measurement, arguments, machine

Speeds = Mapping[str, Mapping[str, float]]
"""Speed of each program in each of its precisions."""


class SideBySide(Measurement):
    """One run of `make bench-NAME`, with passes from the command line. A run of fewer passes is a scratch run.

    variables: those of make that were given, as "NANOGPT=/path/to/nanoGPT".
    """

    def __init__(self, name: str, doc: str | None, usual_passes: int, variables: str = "") -> None:
        parser = arguments(doc)
        parser.add_argument("--passes", type=int, default=usual_passes, help="timed passes of every row")
        asked = parser.parse_args()
        self.name, self.variables, self.usual, self.passes = name, variables, usual_passes, asked.passes
        super().__init__(scratch=asked.scratch or asked.passes < usual_passes)

    def finish(self, result: dict[str, Any], table: Callable[[dict[str, Any]], Iterator[str]]) -> None:
        """Print and write a result. Exit with code 1 if a bar is missed."""
        result = {
            "command": f"make bench-{self.name}"
            + (f" {self.variables}" if self.variables else "")
            + (f' BENCH="--passes {self.passes}"' if self.passes != self.usual else ""),
            "passes": self.passes,
            **result,
            "wall_seconds": round(time.perf_counter() - self.begun, 1),
        }
        print(*table(result), sep="\n")
        print(", ".join(f"{name} {value}" for name, value in machine().items()))
        print(f"{result['wall_seconds'] / 60:.1f} minutes")
        self.keep(f"{self.name}_speed", result)
        conclude(result["bars"])


def best_of_each(speeds: Speeds, ours: str) -> dict[str, float]:
    """Return the speed of ours in its fastest precision over that of each program in its fastest."""
    best = {name: max(of_one.values()) for name, of_one in speeds.items()}
    return {name: best[ours] / speed for name, speed in best.items()}


def ending(result: dict[str, Any]) -> Iterator[str]:
    """Format the last lines of a table: bars and versions."""
    yield from lines(result["bars"])
    yield ""
    yield ", ".join(f"{name} {version}" for name, version in result["versions"].items())
