"""Robustness of a run: damage to every file, kills, a full disk, a disk that cannot be written, two trainings at once.

    make torture
    make torture BENCH="--flips 20 --edits 5 --kills 2"    a quick try, written to runs/scratch

Small models of recipes that need no data, two trials at a time. Written to benchmarks/results/torture.json; with other
numbers of trials to runs/scratch alone.
"""

import faulthandler
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from .bars import bar, conclude, lines, rounded
from .damage import Damage, edits, files_of, flips
from .kills import killed
from .records import ROOT, Measurement, arguments
from .refusals import refusals
from .trainings import OFTEN, command, quietly
from .watched import memory_of

FOLDER = ROOT / "runs" / "torture"

KILLED = ("Transformer", "recurrent", "language model", "classification", "two processes")
"""Trainings that are killed."""

DAMAGED = {"Transformer": "The old judge sees the small cat.", "toy": "3 1 4", "language model": "a"}
"""Items for the runs that are damaged."""

MOST_GB, MOST_SECONDS, MOST_MINUTES = 1.5, 10.0, 30.0
"""Bars of a damaged run's memory and answer, and of all trials."""

HANGS = 120.0
"""Seconds after which a trial counts as hanging: its stack is printed, and the process ends."""

AT_A_TIME = 2

FLIPS, EDITS, KILLS = 200, 50, 10
"""Flips of a bit and edits of each file, and kills of each training, of a kept result."""


@dataclass
class Ends:
    """Outcomes of the damages of one file."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    """Longest time to an outcome, in seconds."""
    gigabytes: float = 0.0
    """Peak resident memory of the process, in GB."""
    wrong: list[str] = field(default_factory=list)
    """Damages that were neither refused by name nor harmless."""

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "counts": dict(self.counts), "seconds": rounded(self.seconds)}


def damage(model: str, folder: Path, flips_each: int, edits_each: int) -> dict[str, Any]:
    """Return the outcomes of the damages of each file of a run."""
    import torch

    torch.set_num_threads(1)
    run, item = folder / "run", DAMAGED[model]
    done = quietly(command(model, run, 40, OFTEN))
    assert done.returncode == 0, done.stderr
    _use(run, item, is_translator=model != "language model")
    trial, random, found = Damage(run, [item]), Random(model), {}
    for file in files_of(run):
        ends = found[str(file)] = Ends()
        for what, change in [*flips(random, flips_each), *edits(file, random, edits_each)]:
            _forget_peak()
            faulthandler.dump_traceback_later(HANGS, exit=True)
            began = time.monotonic()
            end = trial.verdict(file, change)
            faulthandler.cancel_dump_traceback_later()
            ends.seconds = max(ends.seconds, time.monotonic() - began)
            ends.gigabytes = max(ends.gigabytes, _peak())
            ends.counts[end.split()[0]] += 1
            if end not in ("refused", "same"):
                ends.wrong.append(f"{what}: {end[:300]}")
                print(f"{model} {file} {what}: {end}", flush=True)
    return {file: one.as_dict() for file, one in found.items()}


def _use(run: Path, item: str, *, is_translator: bool) -> None:
    """Evaluate a run, and export a translator, so that their files are damaged too."""
    import regardant

    opened = regardant.load(run)
    opened.evaluate()
    if is_translator:
        opened.translate([item], engine="ctranslate2")


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak() -> float:
    """Return the peak resident memory of this process in GB since its peak was reset."""
    peak = memory_of(field="VmHWM")
    assert peak is not None
    return peak / 1e9


def together(trials: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]) -> dict[str, Any]:
    """Return the results of trials, each in a process of its own."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(AT_A_TIME, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        waiting: dict[str, Future[Any]] = {
            name: pool.submit(_timed, name, function, values) for name, (function, values) in trials.items()
        }
        return {name: one.result() for name, one in waiting.items()}


def _timed(name: str, function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    began = time.monotonic()
    found = function(*values)
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    return found


def trials_of(folder: Path, flips_each: int, edits_each: int, kills: int) -> dict[str, Any]:
    """Return all trials by name, the longest first."""
    own = {name: folder / name.replace(" ", "-") for name in {*KILLED, *DAMAGED}}
    return {
        **{f"damage of {one}": (damage, (one, own[one] / "damaged", flips_each, edits_each)) for one in DAMAGED},
        "refusals": (refusals, (folder / "refusals",)),
        **{f"kills of {one}": (killed, (one, own[one], kills)) for one in KILLED},
    }


def judged(found: dict[str, Any], kills: int, minutes: float) -> list[dict[str, Any]]:
    """Return the bars of all trials."""
    files = [one for model in DAMAGED for one in found[f"damage of {model}"].values()]
    killings = [found[f"kills of {model}"] for model in KILLED]
    failed = {
        trial: None if phases is None else sum(not ok for ok in phases.values())
        for trial, phases in found["refusals"].items()
    }
    wrong = sum(len(one["wrong"]) for one in files)
    return [
        bar("damages that were neither refused by name nor harmless", wrong, 0),
        bar("memory of a damaged run in GB", max(one["gigabytes"] for one in files), MOST_GB),
        bar("longest answer of a damaged run in s", max(one["seconds"] for one in files), MOST_SECONDS),
        bar("kills", sum(one["kills"] for one in killings), kills * len(KILLED), at_least=True),
        bar("killed trainings that did not end bit-equal", sum(not one["bit_equal"] for one in killings), 0),
        *(bar(f"refusals that failed, {trial}", count, 0) for trial, count in failed.items()),
        bar("minutes of all trials", minutes, MOST_MINUTES),
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--flips", type=int, default=FLIPS, metavar="N", help=f"flips of a bit in each file ({FLIPS})")
    parser.add_argument("--edits", type=int, default=EDITS, metavar="N", help=f"edits of each file ({EDITS})")
    parser.add_argument("--kills", type=int, default=KILLS, metavar="N", help=f"kills of each training ({KILLS})")
    asked = parser.parse_args()
    whole = (asked.flips, asked.edits, asked.kills) == (FLIPS, EDITS, KILLS)
    measurement = Measurement(scratch=asked.scratch or not whole)
    shutil.rmtree(FOLDER, ignore_errors=True)
    began = time.monotonic()
    found = together(trials_of(FOLDER, asked.flips, asked.edits, asked.kills))
    bars = judged(found, asked.kills, (time.monotonic() - began) / 60)
    print(*lines(bars), sep="\n")
    result = {"command": "make torture", "flips": asked.flips, "edits": asked.edits, **found, "bars": bars}
    measurement.keep("torture", result)
    shutil.rmtree(FOLDER, ignore_errors=True)
    conclude(bars)


if __name__ == "__main__":
    main()
