"""Sampling speed of a language model compared with transformers: one text and sixteen, each library with its cache.

    make bench-sampling                          two minutes on two cores
    make bench-sampling BENCH="--passes 1"       a quick try, written to runs/scratch

GPT-2's layers in the sizes of `make bench-models`, with fresh weights. Each library is a process that keeps its model
and has the same allocator settings; transformers gets the cache and the attention that are fastest in a short probe.
Passes over them are taken in turn. Ratios are between rows of equal precision; "best of each" is between the fastest
precisions of each library. Written to benchmarks/results/sampling_speed.json.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from .bars import bar, rounded, shown
from .decoding import CHOICES
from .model_steps import OURS, SHAPES, THEIRS, best_over_others
from .records import ROOT, precisions
from .side_by_side import SideBySide, ending
from .workers import Peer, Row, fastest, interleave, one_torch, progress, settings, versions_of

FOLDER = ROOT / "runs" / "bench-sampling"
PASSES = 7
MODEL = "GPT-2, context 256"
TOKENS, WARM_UP = 200, 20
"""Numbers of tokens sampled for each text in a timed pass, and in the warm-up."""
CASES = {"one text": 1, "16 texts": 16}
"""Number of texts at once, by case."""
LEAST = 2.0
"""Least ratio of Regardant's speed to that of transformers, in equal precision."""


def measure(passes: int) -> dict[str, Any]:
    """Return tokens a second by case, precision and library, each reading of them, those of the probes of transformers'
    settings, and the versions of the libraries."""
    path = FOLDER / "shape.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(SHAPES[MODEL]), encoding="utf-8")
    with ExitStack() as stack:
        theirs = stack.enter_context(Peer("transformers_sampling", [str(path)], folder=FOLDER, library=THEIRS))
        ours = stack.enter_context(Peer("regardant_sampling", [str(path)], folder=FOLDER))
        one_torch([theirs, ours])
        found: dict[str, Any] = {}
        probed: dict[str, float | None] = {}
        readings: dict[str, list[float | None]] = {}
        for name, count in CASES.items():
            progress(name)
            rows = {}
            for precision in precisions():
                asked = {"rows": count, "precision": precision, "tokens": TOKENS}
                rows[OURS, precision] = Row(f"{OURS}, {precision}", ours, asked)
                candidates = settings(f"{THEIRS}, {precision}", theirs, asked, CHOICES)
                rows[THEIRS, precision], speeds = fastest(candidates, {"tokens": WARM_UP}, {})
                probed |= {f"{name}, {setting}": rounded(speed) for setting, speed in speeds.items()}
            for row in rows.values():
                row.peer.ask(**row.request | {"tokens": WARM_UP})
            interleave(rows.values(), passes)
            found[name] = {
                precision: {library: rounded(rows[library, precision].tokens_per_second) for library in (OURS, THEIRS)}
                for precision in precisions()
            }
            readings |= {f"{name}, {row.name}": [rounded(speed) for speed in row.speeds] for row in rows.values()}
        return {
            "versions": versions_of([theirs, ours]),
            "tokens_per_second": found,
            "readings": readings,
            "probe_tokens_per_second": probed,
        }


def bars(cases: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the bars, each of equal precision."""
    for name, found in cases.items():
        for precision, speeds in found.items():
            times = speeds[OURS] / speeds[THEIRS]
            yield bar(f"{name}, {precision}: times transformers", times, LEAST, at_least=True)


def table(result: dict[str, Any]) -> Iterator[str]:
    """Format a result for the terminal."""
    yield f"{'tokens a second':28}{OURS:>14}{THEIRS:>14}{'ratio':>8}{'best of each':>14}"
    for name, found in result["tokens_per_second"].items():
        best = shown(best_over_others(found))
        for precision, speeds in found.items():
            ratio = shown(speeds[OURS] / speeds[THEIRS])
            yield f"{f'{name}, {precision}':28}{speeds[OURS]:>14,.0f}{speeds[THEIRS]:>14,.0f}{ratio:>8}{best:>14}"
    yield from ending(result)


def main() -> None:
    measurement = SideBySide("sampling", __doc__, PASSES)
    measured = measure(measurement.passes)
    judged = list(bars(measured["tokens_per_second"]))
    measurement.finish({"shape": SHAPES[MODEL], "tokens": TOKENS, **measured, "bars": judged}, table)


if __name__ == "__main__":
    main()
