"""Cost of each efficient attention and its error against exact attention: time, memory, slopes.

    make bench-attention BENCH="--run runs/demo"       a quarter of an hour, with the error on that run's queries
    make bench-attention BENCH="--lengths 512,1024"    a quick try without that, written to runs/scratch

Forward and backward, batch 1, 8 heads of 64, float32. Exact attention is measured twice, as PyTorch's flash kernel
(sdpa) and with its matrix in memory (matmul). A whole measurement is written to benchmarks/results/attention.json.
Exits with code 1 if a bar is missed.
"""

import argparse
import math
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import linear_regression
from typing import Any

import torch

from ..bars import bar, conclude, lines, rounded, shown
from ..records import ROOT, Measurement, arguments, machine
from .cost import (
    D_MODEL,
    HEAD_SIZE,
    LENGTHS,
    LONGEST,
    MECHANISMS,
    NUM_HEADS,
    RESIDUAL_LAYERS,
    RESIDUAL_TOKENS,
    Measured,
    cases,
    measure_memory,
    measure_residuals,
    measure_time,
    progress,
)

FITTED_FROM = 2048
"""Shortest length in tokens that slopes are fitted to: below it, calls cost more than arithmetic."""

LINEAR = ("window", "strided", "sparse", "segment", "linear", "performer", "linformer")
SLOPE_BARS = dict.fromkeys(LINEAR, 1.15) | {"lsh": 1.25}
"""Largest slopes of time and of memory over length, both on logarithmic scales."""
SDPA_MEMORY_BAR = 1.15

FAST = ("window", "linear")
SPEEDUP_BAR, MEMORY_BAR = 8.0, 1.5
"""Least speed and largest memory of FAST mechanisms, as multiples of those of sdpa at LONGEST tokens."""

REVERSIBLE_BAR = 1.3


def slope(points: dict[int, float]) -> float | None:
    """Return the least-squares slope of the logarithms: 1 is linear, 2 quadratic. None for fewer than two points."""
    kept = {length: value for length, value in points.items() if length >= FITTED_FROM}
    if len(kept) < 2:
        return None
    return linear_regression([math.log(n) for n in kept], [math.log(value) for value in kept.values()]).slope


def over_sdpa(one: Measured, measured: list[Measured]) -> tuple[float | None, float | None]:
    """Return speed and memory as multiples of those of sdpa at LONGEST tokens, or None if it is not measured."""
    sdpa = next(other for other in measured if other.name == "sdpa" and other.causal == one.causal)
    if LONGEST not in one.seconds:
        return None, None
    return sdpa.seconds[LONGEST] / one.seconds[LONGEST], one.mebibytes[LONGEST] / sdpa.mebibytes[LONGEST]


def bars(measured: list[Measured], residuals: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the bars."""
    for one in measured:
        if limit := SLOPE_BARS.get(one.name):
            yield bar(f"{one.case}: slope of time", slope(one.seconds), limit)
        if limit := SDPA_MEMORY_BAR if one.name == "sdpa" else SLOPE_BARS.get(one.name):
            yield bar(f"{one.case}: slope of memory", slope(one.mebibytes), limit)
        if one.name in FAST:
            faster, memory = over_sdpa(one, measured)
            yield bar(f"{one.case}: times faster than sdpa at {LONGEST:,}", faster, SPEEDUP_BAR, at_least=True)
            yield bar(f"{one.case}: times the memory of sdpa at {LONGEST:,}", memory, MEMORY_BAR)
    layers = " over ".join(f"{number} ({kind})" for kind, number in RESIDUAL_LAYERS.items())
    yield bar(f"activation memory of layers: {layers}", residuals["ratio"], REVERSIBLE_BAR)


def row(one: Measured, measured: list[Measured], off: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Return one mechanism's numbers as result files hold them."""
    faster, memory = over_sdpa(one, measured)
    return {
        "mechanism": one.name,
        "causal": one.causal,
        "settings": MECHANISMS[one.name].model_dump(mode="json"),
        "seconds": {length: rounded(value) for length, value in one.seconds.items()},
        "mebibytes": {length: rounded(value) for length, value in one.mebibytes.items()},
        "slope_of_time": rounded(slope(one.seconds)),
        "slope_of_memory": rounded(slope(one.mebibytes)),
        "times_faster_than_sdpa": rounded(faster),
        "times_the_memory_of_sdpa": rounded(memory),
        # Errors are measured without a mask.
        **{f"error_on_{what}": None if one.causal else rounded(found.get(one.name)) for what, found in off.items()},
    }


def table(result: dict[str, Any]) -> Iterator[str]:
    """Format a result for the terminal."""
    lengths = result["lengths"]
    blank = [""] * (len(lengths) - 1)
    yield line(["", "seconds", *blank, "", "MiB", *blank, "", "x speed", "x MiB", "error", "error"])
    yield line(
        ["tokens", *map(str, lengths), "slope", *map(str, lengths), "slope", "of sdpa", "of sdpa", "random", "trained"]
    )
    for one in result["mechanisms"]:
        numbers = [*map(one["seconds"].get, lengths), one["slope_of_time"]]
        numbers += [*map(one["mebibytes"].get, lengths), one["slope_of_memory"]]
        numbers += [one["times_faster_than_sdpa"], one["times_the_memory_of_sdpa"]]
        numbers += [one["error_on_random"], one.get("error_on_trained")]
        yield line([one["mechanism"] + ", causal" * one["causal"], *map(shown, numbers)])
    yield ""
    for layers, mebibytes in result["residuals"]["mebibytes"].items():
        yield f"{mebibytes:.0f} MiB of activations for {layers}: {RESIDUAL_TOKENS:,} tokens, d_model {D_MODEL}"
    yield ""
    yield from lines(result["bars"])


def line(cells: list[str]) -> str:
    """Format one row of the table."""
    return f"{cells[0]:18}" + "".join(f"{cell:>8}" for cell in cells[1:])


def command() -> str:
    """Return the command as a reader would type it."""
    given = shlex.join(sys.argv[1:]).replace(f"{ROOT}/", "")
    return f'make bench-attention BENCH="{given}"' if given else "make bench-attention"


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = arguments(__doc__)
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)), help="tokens, as 512,1024")
    parser.add_argument("--run", type=Path, help="a trained run; errors on its queries and keys are measured, too")
    return parser.parse_args()


def main() -> None:
    from .error import LENGTH as ERROR_LENGTH  # not imported by the processes that measure memory
    from .error import errors_on_random, errors_on_trained

    asked = options()
    lengths = sorted(int(length) for length in asked.lengths.split(","))
    if lengths[-1] > LONGEST:
        sys.exit(f"--lengths {asked.lengths}: at most {LONGEST}")
    whole = lengths == LENGTHS and asked.run is not None
    measurement = Measurement(scratch=asked.scratch or not whole)
    off = {"random": errors_on_random()}
    if asked.run:
        off["trained"] = errors_on_trained(asked.run)
    else:
        progress("no --run is given, so there are no errors on trained queries and keys")
    measured = cases()
    measure_time(measured, lengths)
    measure_memory(measured, lengths)
    residuals = measure_residuals()
    result = {
        "command": command(),
        "lengths": lengths,
        "batch": 1,
        "heads": NUM_HEADS,
        "head_size": HEAD_SIZE,
        "threads": torch.get_num_threads(),
        "error_length": ERROR_LENGTH,
        "mechanisms": [row(one, measured, off) for one in measured],
        "residuals": residuals,
        "bars": list(bars(measured, residuals)),
        "wall_seconds": round(time.perf_counter() - measurement.begun, 1),
    }
    print(*table(result), "", sep="\n")
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    print(f"{result['wall_seconds'] / 60:.1f} minutes")
    measurement.keep("attention", result)
    conclude(result["bars"])


if __name__ == "__main__":
    main()
