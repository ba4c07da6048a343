"""Updates a second of one process and of several, by the width of the model, and the plan's error for several: whole
trainings, in turn.

    make bench-processes

On the embedded grammar, so no data is needed. Written to benchmarks/results/processes.json.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from statistics import median
from typing import Any, get_args

import yaml

from regardant.training.config import Strategy
from regardant.training.events import peak_bytes, read_events

from .bars import bar, conclude, lines, rounded
from .memory import OFF_BY
from .records import REGARDANT, ROOT, Measurement, arguments, set_options

FOLDER = ROOT / "runs" / "bench-processes"
WIDTHS = {128: 150, 256: 60, 512: 30}
"""Updates by d_model: some ten seconds each."""
PASSES = 3
STRATEGIES = get_args(Strategy)
PLANNED = 256
"""Width of the model that is trained and planned with each strategy."""
SPEED_OFF_BY = 0.25
"""Largest relative difference between the speed of a plan and that measured."""

SAME = [
    "data.train_size=20000",
    "data.test_size=100",
    "data.heldout_size=10",
    "training.max_minutes=null",
    "training.validate_every=100000",
    "training.batch_tokens=4096",
]


def measured(width: int, processes: int, strategy: str) -> dict[str, float]:
    """Return speed and memory of one training, as planned and as measured.

    Speed is of the updates after the first ten, in which the other processes start.
    """
    run = FOLDER / f"{width}-{processes}-{strategy}"
    shutil.rmtree(run, ignore_errors=True)
    fields = [f"model.d_model={width}", f"model.d_ff={4 * width}", f"training.max_updates={WIDTHS[width]}"]
    shared = [f"training.processes={processes}", f"training.strategy={strategy}"]
    if strategy == "fsdp":  # it refuses Muon, which needs whole matrices
        shared.append("training.optimizer={kind: adamw}")
    given = set_options([*SAME, *fields, *shared])
    subprocess.run([REGARDANT, "train", "demo", "--out", run, *given], check=True, capture_output=True)
    events = [event for event in read_events(run / "metrics.jsonl") if event["event"] == "train"]
    plan = yaml.safe_load((run / "run.yaml").read_text(encoding="utf-8"))["plan"]
    first, last = events[0], events[-1]
    return {
        "updates_per_second": (last["update"] - first["update"]) / (last["time"] - first["time"]),
        "tokens_per_second": median(event["tokens_per_second"] for event in events[1:]),
        "planned_tokens_per_second": plan["tokens_per_second"],
        "memory_bytes": peak_bytes(events),
        "planned_memory_bytes": plan["memory_bytes"],
    }


def bars(found: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the bars of the plan's errors for several processes, by strategy."""
    for strategy, one in found.items():
        for name, shown, limit in (("memory_bytes", "memory", OFF_BY), ("tokens_per_second", "speed", SPEED_OFF_BY)):
            off = abs(one[f"planned_{name}"] / one[name] - 1)
            yield bar(f"{strategy}: relative error of the planned {shown}", off, limit)


def main() -> None:
    measurement = Measurement(scratch=arguments(__doc__).parse_args().scratch)
    several = os.cpu_count() or 1
    cases = [(width, count, "sum") for width in WIDTHS for count in (1, several)]
    cases += [(PLANNED, several, strategy) for strategy in STRATEGIES if strategy != "sum"]
    readings: dict[tuple[int, int, str], list[dict[str, float]]] = {case: [] for case in cases}
    for _ in range(PASSES):
        for case, taken in readings.items():
            taken.append(measured(*case))
    medians = {
        case: {name: rounded(median(one[name] for one in taken)) for name in taken[0]}
        for case, taken in readings.items()
    }

    def speed(width: int, count: int) -> float:
        return median(one["updates_per_second"] for one in readings[width, count, "sum"])

    gains = {width: speed(width, several) / speed(width, 1) for width in WIDTHS}
    for width, gain in gains.items():
        print(f"d_model {width}: {several} processes make {gain:.2f} times as many updates a second as one")
    planned = {strategy: medians[PLANNED, several, strategy] for strategy in STRATEGIES}
    judged = list(bars(planned))
    print(*lines(judged), sep="\n")
    result = {
        "command": "make bench-processes",
        "updates_per_second": {
            width: {
                count: [one["updates_per_second"] for one in readings[width, count, "sum"]] for count in (1, several)
            }
            for width in WIDTHS
        },
        "gain": {width: round(gain, 3) for width, gain in gains.items()},
        "strategies": planned,
        "bars": judged,
    }
    measurement.keep("processes", result)
    conclude(judged)


if __name__ == "__main__":
    main()
