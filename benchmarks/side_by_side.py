"""What benchmarks of peers have in common: how often they pass, how their tables end, and what they leave."""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

from .bars import told
from .records import RESULTS, ROOT, commit, keep, machine


class Measurement:
    """One run of `make bench-NAME`: its passes come from the command line, and its clock begins now."""

    def __init__(self, name: str, doc: str | None, usual_passes: int) -> None:
        parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--passes", type=int, default=usual_passes, help="timed passes of every row")
        self.name, self.usual, self.passes = name, usual_passes, parser.parse_args().passes
        self.begun, self.commit = time.perf_counter(), commit()

    def keep(self, result: dict[str, Any], table: Callable[[dict[str, Any]], Iterator[str]]) -> None:
        """Print and write what was measured; a quick try, of fewer passes, not among the results."""
        result = {
            "command": f"make bench-{self.name}"
            + (f' BENCH="--passes {self.passes}"' if self.passes != self.usual else ""),
            "passes": self.passes,
            **result,
            "wall_seconds": round(time.perf_counter() - self.begun, 1),
            "machine": machine(),
            "commit": self.commit,
        }
        print(*table(result), f"{result['wall_seconds'] / 60:.1f} minutes", sep="\n")
        tried = ROOT / "runs" / f"bench-{self.name}.json"
        keep(RESULTS / f"{self.name}_speed.json" if self.passes >= self.usual else tried, result)


def ending(result: dict[str, Any]) -> Iterator[str]:
    """Of a table: what was promised, of which versions and on which machine."""
    yield from told(result["bars"])
    yield ""
    yield ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    yield ", ".join(f"{name} {value}" for name, value in result["machine"].items())
