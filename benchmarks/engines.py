"""Speed of `regardant translate` as installed, compared with `--engine torch`, on test2016 of Multi30k.

    make bench-engines                        some minutes on two cores; reads Multi30k under REGARDANT_DATA
    make bench-engines BENCH="--passes 1"     a quick try, written to runs/scratch

The model is that of bench-decoding, trained here unless its run exists. At a pipe: the time of a process that
translates the test set with five beams, minus that of a process that translates one sentence. One at a time: calls in
one process. Passes are taken in turn. Written to benchmarks/results/engines_speed.json.
"""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import regardant
from regardant.evaluation.translation import TranslationMetrics, corpus_bleu

from .bars import bar, rounded
from .decoding import LIKE_BLEU, RUN, texts, train
from .records import REGARDANT, versions
from .side_by_side import SideBySide, ending
from .workers import progress

PASSES = 5
BEAM_SIZE = 5
EVERY = 10
"""One sentence in EVERY is translated by itself."""

TORCH, AUTO = "torch", "auto"
TIMES_AT_A_PIPE, TIMES_ALONE = 2.5, 6.0
IDENTICAL = 0.99
"""Least share of identical translations of an engine in float32."""


def at_a_pipe(engine: str, sentences: list[str]) -> tuple[float, list[str]]:
    """Return the wall time in seconds of a process that translates sentences, and the lines that it writes."""
    command = [REGARDANT, "translate", RUN, "--engine", engine, "--beam-size", str(BEAM_SIZE)]
    begun = time.perf_counter()
    ended = subprocess.run(command, input="\n".join(sentences) + "\n", check=True, capture_output=True, text=True)
    return time.perf_counter() - begun, ended.stdout.splitlines()


def one_by_one(run: regardant.Run, engine: str, sentences: list[str]) -> float:
    """Return the seconds of translating the sentences by one call each."""
    begun = time.perf_counter()
    for sentence in sentences:
        run.translate([sentence], engine=engine, beam_size=BEAM_SIZE)
    return time.perf_counter() - begun


def interleaved(passes: int, measure: Callable[[str], float]) -> dict[str, list[float]]:
    """Return the readings of both engines, taken in turn."""
    readings: dict[str, list[float]] = {TORCH: [], AUTO: []}
    for number in range(passes):
        for engine in (TORCH, AUTO) if number % 2 else (AUTO, TORCH):
            readings[engine].append(measure(engine))
    return readings


def bars(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the bars of a result."""
    pipe, alone = result["at_a_pipe"], result["one_at_a_time"]
    yield bar("five beams at a pipe: times torch", pipe[AUTO] / pipe[TORCH], TIMES_AT_A_PIPE, at_least=True)
    yield bar("one sentence at a time: times torch", alone[AUTO] / alone[TORCH], TIMES_ALONE, at_least=True)
    yield bar("difference in BLEU from torch", abs(result["bleu"][AUTO] - result["bleu"][TORCH]), LIKE_BLEU)
    is_exact = result["engine"].endswith("float32")
    yield bar("identical translations", result["identical"], IDENTICAL, at_least=True, goal=not is_exact)


def table(result: dict[str, Any]) -> Iterator[str]:
    """Format a result for the terminal."""
    yield result["choice"]
    yield f"{'sentences a second':24}{TORCH:>10}{result['engine']:>22}"
    for name in ("at_a_pipe", "one_at_a_time"):
        yield f"{name.replace('_', ' '):24}{result[name][TORCH]:>10.1f}{result[name][AUTO]:>22.1f}"
    yield f"{'BLEU':24}{result['bleu'][TORCH]:>10.2f}{result['bleu'][AUTO]:>22.2f}"
    yield from ending(result)


def main() -> None:
    measurement = SideBySide("engines", __doc__, PASSES)
    train()
    sources, references = texts("en"), texts("de")
    run = regardant.load(Path(RUN))
    choice = run.translation.choose_engine(progress)
    few = sources[::EVERY]
    written = {engine: at_a_pipe(engine, sources)[1] for engine in (TORCH, AUTO)}  # warms up
    progress("at a pipe")
    empty = {engine: median(at_a_pipe(engine, sources[:1])[0] for _ in range(3)) for engine in (TORCH, AUTO)}
    pipe = interleaved(measurement.passes, lambda engine: at_a_pipe(engine, sources)[0] - empty[engine])
    progress("one at a time")
    one_by_one(run, TORCH, few[:3])
    one_by_one(run, AUTO, few[:3])
    alone = interleaved(measurement.passes, lambda engine: one_by_one(run, engine, few))

    def speeds(readings: dict[str, list[float]], count: int) -> dict[str, float]:
        return {engine: count / median(taken) for engine, taken in readings.items()}

    same = sum(map(str.__eq__, written[TORCH], written[AUTO])) / len(sources)
    result: dict[str, Any] = {
        "engine": choice.engine,
        "choice": str(choice),
        "beam_size": BEAM_SIZE,
        "start_seconds": {engine: rounded(seconds) for engine, seconds in empty.items()},
        "at_a_pipe": speeds(pipe, len(sources)),
        "one_at_a_time": speeds(alone, len(few)),
        "bleu": {name: corpus_bleu(lines, references, TranslationMetrics()) for name, lines in written.items()},
        "identical": same,
        "versions": versions("ctranslate2"),
    }
    measurement.finish({**result, "bars": list(bars(result))}, table)


if __name__ == "__main__":
    main()
