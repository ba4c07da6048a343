"""How long a user waits for one sentence, against what `import torch` alone takes, and for `--help`.

    make bench-startup

Whole processes, in turn. Lands in benchmarks/results/startup.json.
"""

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from .bars import bar, rounded, told
from .records import RESULTS, ROOT, commit, keep, machine

REGARDANT = ROOT / ".venv" / "bin" / "regardant"
RUN = ROOT / "runs" / "bench-startup"
REPEATS = 7

SMALL = ["data.train_size=2000", "data.test_size=100", "data.heldout_size=10", "training.max_updates=20"]
"""A demo whose training takes seconds: what it says does not matter here."""

TIMES_TORCH, MORE_SECONDS, HELP_SECONDS = 1.8, 0.5, 0.3

COMMANDS: dict[str, list[str | Path]] = {
    "import torch": [sys.executable, "-c", "import torch"],
    "translate": [REGARDANT, "translate", RUN, "The cat sat on the mat."],
    "--help": [REGARDANT, "--help"],
}


def seconds_of(command: list[str | Path]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    if not (RUN / "model.safetensors").is_file():
        overrides = [argument for one in SMALL for argument in ("--set", one)]
        subprocess.run([REGARDANT, "train", "demo", "--out", RUN, *overrides], check=True)
    readings: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(1 + REPEATS):  # the first finds the files
        for name, command in COMMANDS.items():
            taken = seconds_of(command)
            if number:
                readings[name].append(taken)
    seconds = {name: median(taken) for name, taken in readings.items()}
    allowed = TIMES_TORCH * seconds["import torch"] + MORE_SECONDS
    bars = [
        bar("seconds of `regardant translate` for one sentence", seconds["translate"], rounded(allowed)),
        bar("seconds of `regardant --help`", seconds["--help"], HELP_SECONDS),
    ]
    result = {
        "command": "make bench-startup",
        "seconds": {name: rounded(value) for name, value in seconds.items()},
        "readings": {name: [rounded(value) for value in taken] for name, taken in readings.items()},
        "bars": bars,
        "machine": machine(),
        "commit": commit(),
    }
    print(*(f"{name:14}{value:6.2f} s" for name, value in seconds.items()), *told(bars), sep="\n")
    keep(RESULTS / "startup.json", result)


if __name__ == "__main__":
    main()
