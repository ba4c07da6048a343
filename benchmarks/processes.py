"""What dividing batches among processes gains, by the width of the model: whole trainings, in turn.

    make bench-processes

On the embedded grammar, so that it needs no data. Lands in benchmarks/results/processes.json.
"""

import json
import os
import shutil
import subprocess
from statistics import median

from .records import RESULTS, ROOT, commit, keep, machine

REGARDANT = ROOT / ".venv" / "bin" / "regardant"
FOLDER = ROOT / "runs" / "bench-processes"
WIDTHS = {128: 150, 256: 60, 512: 30}
"""d_model, with the updates to make: some ten seconds each."""
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
    """Of one training, without its first ten updates, for which the others have to come."""
    run = FOLDER / f"{width}-{processes}"
    shutil.rmtree(run, ignore_errors=True)
    fields = [f"model.d_model={width}", f"model.d_ff={4 * width}", f"training.max_updates={WIDTHS[width]}"]
    given = [part for one in (*SAME, *fields, f"training.processes={processes}") for part in ("--set", one)]
    subprocess.run([REGARDANT, "train", "demo", "--out", run, *given], check=True, capture_output=True)
    events = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    first, *_, last = (event for event in events if event["event"] == "train")
    return float((last["update"] - first["update"]) / (last["time"] - first["time"]))


def main() -> None:
    start, processes = commit(), os.cpu_count() or 1
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
        "machine": machine(),
        "commit": start,
    }
    keep(RESULTS / "processes.json", result)


if __name__ == "__main__":
    main()
