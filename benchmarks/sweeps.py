"""Sweeps of real recipes: whether `tune` finds better settings than a recipe's own, and the power law of `scale`.

    make bench-sweeps                        all three: 70 minutes
    make bench-sweeps BENCH="tune-reverse"   one of them

Written to benchmarks/results/sweeps/NAME.json.
"""

import shutil
import time
from typing import Any

from .bars import bar, conclude, lines
from .recipes import json_of
from .records import ROOT, Measurement, arguments

RUNS = ROOT / "runs" / "bench" / "sweeps"

TUNING, SCALING = 20.0, 30.0
"""Minutes of a sweep."""

SWEEPS: dict[str, tuple[list[str], float]] = {
    "tune-sst2": (["tune", "sst2"], TUNING),
    "tune-reverse": (["tune", "reverse"], TUNING),
    "scale-shakespeare": (["scale", "shakespeare", "--by", "size"], SCALING),
}
"""Command and minutes by name."""


def measure(name: str) -> dict[str, Any]:
    """Run a sweep in a new folder; return its output and the bar of its time."""
    command, minutes = SWEEPS[name]
    out = RUNS / name
    shutil.rmtree(out, ignore_errors=True)
    asked = [*command, "--minutes", f"{minutes:g}"]
    started = time.perf_counter()
    output = json_of([*asked, "--out", out, "--json"])
    taken = (time.perf_counter() - started) / 60
    judged = [bar("minutes", taken, minutes)]
    return {"command": " ".join(["regardant", *asked]), "output": output, "bars": judged}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("sweeps", nargs="*", choices=[*SWEEPS, []], help="default: all")
    asked = parser.parse_args()
    measurement = Measurement(scratch=asked.scratch)
    bars = []
    for name in asked.sweeps or SWEEPS:
        found = measure(name)
        print(*lines(found["bars"]), sep="\n")
        measurement.keep(f"sweeps/{name}", found)
        bars += found["bars"]
    conclude(bars)


if __name__ == "__main__":
    main()
