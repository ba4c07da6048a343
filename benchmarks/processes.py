"""Updates a second of one process and of several, by the width of the model: whole trainings, in turn.

    make bench-processes

On the embedded grammar, so no data is needed. Written to benchmarks/results/processes.json.
"""

import json
import os
import shutil
import subprocess
from statistics import median

from .records import ROOT, Measurement, arguments

REGARDANT = ROOT / ".venv" / "bin" / "regardant"
FOLDER = ROOT / "runs" / "bench-processes"
WIDTHS = {128: 150, 256: 60, 512: 30}
"""Updates by d_model: some ten seconds each."""
PASSES = 3

SAME = [
    "data.train_size=20000",
    "data.test_size=100",
    "data.heldout_size=10",
    "training.max_minutes=null",
    "training.validate_every=100000",
    "training.batch_tokens=4096",
]


def updates_per_second(width: int, processes: int) -> float:
    """Return the speed of one training after its first ten updates, in which the other processes start."""
    run = FOLDER / f"{width}-{processes}"
    shutil.rmtree(run, ignore_errors=True)
    fields = [f"model.d_model={width}", f"model.d_ff={4 * width}", f"training.max_updates={WIDTHS[width]}"]
    given = [part for one in (*SAME, *fields, f"training.processes={processes}") for part in ("--set", one)]
    subprocess.run([REGARDANT, "train", "demo", "--out", run, *given], check=True, capture_output=True)
    events = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    first, *_, last = (event for event in events if event["event"] == "train")
    return float((last["update"] - first["update"]) / (last["time"] - first["time"]))


def main() -> None:
    measurement = Measurement(scratch=arguments(__doc__).parse_args().scratch)
    processes = os.cpu_count() or 1
    readings: dict[int, dict[int, list[float]]] = {width: {1: [], processes: []} for width in WIDTHS}
    for _ in range(PASSES):
        for width, taken in readings.items():
            for count in taken:
                taken[count].append(updates_per_second(width, count))
    gains = {width: median(taken[processes]) / median(taken[1]) for width, taken in readings.items()}
    for width, gain in gains.items():
        print(f"d_model {width}: {processes} processes make {gain:.2f} times as many updates a second as one")
    result = {
        "command": "make bench-processes",
        "updates_per_second": readings,
        "gain": {width: round(gain, 3) for width, gain in gains.items()},
    }
    measurement.keep("processes", result)


if __name__ == "__main__":
    main()
