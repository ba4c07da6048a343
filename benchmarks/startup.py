"""Wall time of `regardant translate` for one sentence and for a missing run, of `import torch` alone and of `--help`.

    make bench-startup

Whole processes, in turn. Written to benchmarks/results/startup.json.
"""

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from .bars import bar, conclude, lines, rounded
from .records import REGARDANT, ROOT, Measurement, arguments

DEMO = ROOT / "runs" / "bench-demo"
REPEATS = 7

TIMES_TORCH, MORE_SECONDS, HELP_SECONDS, REFUSAL_SECONDS = 1.8, 0.5, 0.3, 0.4

REFUSED = "a missing run"
COMMANDS: dict[str, list[str | Path]] = {
    "import torch": [sys.executable, "-c", "import torch"],
    "translate": [REGARDANT, "translate", DEMO, "The cat sat on the mat."],
    "--help": [REGARDANT, "--help"],
    REFUSED: [REGARDANT, "translate", "runs/none", "The cat sat on the mat."],
}


def seconds_of(command: list[str | Path], status: int) -> float:
    """Return the wall time of a command in seconds. Raises RuntimeError if it ends with another status."""
    start = time.perf_counter()
    ended = subprocess.run(command, capture_output=True).returncode
    if ended != status:
        raise RuntimeError(f"{command} ended with status {ended}, not {status}")
    return time.perf_counter() - start


def train_demo() -> Path:
    """Return the run of the demo, trained in some minutes unless it exists. An untrained model would rarely end a
    translation."""
    if not (DEMO / "model.safetensors").is_file():
        subprocess.run([REGARDANT, "train", "demo", "--out", DEMO], check=True)
    return DEMO


def main() -> None:
    measurement = Measurement(scratch=arguments(__doc__).parse_args().scratch)
    train_demo()
    readings: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(1 + REPEATS):  # the first run reads the files from disk
        for name, command in COMMANDS.items():
            taken = seconds_of(command, 2 if name == REFUSED else 0)
            if number:
                readings[name].append(taken)
    seconds = {name: median(taken) for name, taken in readings.items()}
    allowed = TIMES_TORCH * seconds["import torch"] + MORE_SECONDS
    bars = [
        bar("seconds of `regardant translate` for one sentence", seconds["translate"], rounded(allowed)),
        bar("seconds of `regardant --help`", seconds["--help"], HELP_SECONDS),
        bar("seconds until a missing run is refused", seconds[REFUSED], REFUSAL_SECONDS),
    ]
    result = {
        "command": "make bench-startup",
        "seconds": {name: rounded(value) for name, value in seconds.items()},
        "readings": {name: [rounded(value) for value in taken] for name, taken in readings.items()},
        "bars": bars,
    }
    print(*(f"{name:14}{value:6.2f} s" for name, value in seconds.items()), *lines(bars), sep="\n")
    measurement.keep("startup", result)
    conclude(bars)


if __name__ == "__main__":
    main()
