"""What a run survives: damage to every file, kills, a full disk, a place that cannot be written, two trainings at once.

    make torture

Small models of recipes that need no data. Written to benchmarks/results/torture.json.
"""

import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from regardant.run import Record

from .bars import bar, conclude, lines
from .damage import edits, files_of, flips, outputs, verdict
from .records import ROOT, Measurement, arguments

FOLDER = ROOT / "runs" / "torture"

GRAMMAR_SIZES = {"train": 1000, "validation": 40, "test": 110, "heldout": 10}
WORDS = ("tokenizer.kind=word", "tokenizer.vocab_size=250")
NARROW = tuple(f"model.{one}" for one in ("preset=null", "d_model=32", "num_heads=2", "d_ff=64", "max_length=48"))
SHALLOW = ("model.encoder.num_layers=1", "model.decoder.num_layers=1")
TOY_DATA = ("data.train_size=300", "data.validation_size=20", "data.test_size=20")
TOY = (*NARROW, *SHALLOW, *TOY_DATA)
RECURRENT = (*TOY_DATA, "model={kind: recurrent, preset: null, d_model: 32, hidden_size: 32, max_length: 48}")
GRAMMAR = (*NARROW, *SHALLOW, *(f"data.{name}_size={size}" for name, size in GRAMMAR_SIZES.items()), *WORDS)
IMAGES = ("model.d_model=32", "model.num_heads=2", "model.d_ff=64")

ALONE, TOGETHER = "training.processes=1", "training.processes=2"

MODELS = {
    "Transformer": ("demo", (*GRAMMAR, ALONE)),
    "recurrent": ("copy", (*RECURRENT, ALONE)),
    "language model": ("in-context", (ALONE,)),
    "classification": ("digits-vit", (*IMAGES, ALONE)),
    "two processes": ("demo", (*GRAMMAR, TOGETHER)),
    "toy": ("copy", (*TOY, ALONE)),
}
"""Recipes with overrides that make them small."""

KILLED = ("Transformer", "recurrent", "language model", "classification", "two processes")
"""Trainings that are killed."""

DAMAGED = {"Transformer": "The old judge sees the small cat.", "toy": "a b c", "language model": "a"}
"""Items for the runs that are damaged."""

SMALL = ("training.max_minutes=null", "training.max_epochs=null", "training.max_updates=40")
"""Overrides of every training."""

KILLS = 10
"""Kills of each training."""


def command(model: str, folder: Path, *overrides: str) -> list[str]:
    """Return the command that trains a small model."""
    recipe, own = MODELS[model]
    given = [word for one in (*SMALL, *own, *overrides) for word in ("--set", one)]
    return [sys.executable, "-m", "regardant", "train", recipe, "--out", str(folder), *given]


def quietly(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(words, capture_output=True, text=True, **options)


def damage(model: str, flips_each: int, edits_each: int) -> Counter[str]:
    """Return how many damages of each file of a run had which end."""
    item, folder = DAMAGED[model], FOLDER / model.replace(" ", "-")
    quietly(command(model, folder), check=True)
    expected, random, found = outputs(folder, [item]), Random(model), Counter[str]()
    for file in files_of(folder):
        for what, change in [*flips(random, flips_each), *edits(file, random, edits_each)]:
            end = verdict(folder, file, change, [item], expected)
            found[end.split()[0]] += 1
            if end not in ("refused", "same"):
                print(f"{model} {file} {what}: {end}", flush=True)
    return found


def killed(model: str) -> int:
    """Return the number of kills after which a training ended bit-equal to one without; -1 if it did not."""
    name = model.replace(" ", "-")
    whole, parts, random = FOLDER / f"{name}-whole", FOLDER / f"{name}-killed", Random(model)
    often = "training.checkpoint_minutes=1e-9"
    start = time.monotonic()
    quietly(command(model, whole, often), check=True)
    took = time.monotonic() - start
    parts.mkdir(parents=True)
    # Precision and kernel are decided by timing: once for both. Files are fingerprinted anew.
    replace(Record.read(whole), files={}).write(parts)
    kills = 0
    for _ in range(KILLS):
        with subprocess.Popen(
            command(model, parts, often), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                process.wait(random.uniform(0.3, 1.0) * took)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                kills += 1
    quietly(command(model, parts, often), check=True)
    same = (whole / "model.safetensors").read_bytes() == (parts / "model.safetensors").read_bytes()
    return kills if same else -1


def one_line(done: subprocess.CompletedProcess[str], phrase: str) -> bool:
    """Return whether a command was refused by a line with a phrase."""
    last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
    return done.returncode == 2 and last.startswith("regardant: ") and phrase in last and "Traceback" not in done.stderr


def full_disk() -> bool:
    """Return whether a disk that is full in the middle of a training is one line, and the training resumes."""
    folder = FOLDER / "full"
    words = command("toy", folder)
    limited = quietly(["sh", "-c", 'ulimit -f 200; exec "$@"', "sh", *words])
    return one_line(limited, "is the disk full or read-only?") and quietly(words).returncode == 0


def read_only() -> bool:
    """Return whether a file system that cannot be written is one line."""
    return one_line(quietly(command("toy", Path("/proc/run"))), "cannot be written")


def two_at_once() -> bool:
    """Return whether a second training into a folder is refused, and the first one ends."""
    words = command("toy", FOLDER / "two", "training.max_updates=400")
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        while not (FOLDER / "two" / ".regardant-lock").is_file() and first.poll() is None:
            time.sleep(0.05)
        second = quietly(words)
        return one_line(second, f"process {first.pid} is training into it") and first.wait(300) == 0


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--flips", type=int, default=200, metavar="N", help="flips of a bit in each file")
    parser.add_argument("--edits", type=int, default=50, metavar="N", help="edits of each file")
    asked = parser.parse_args()
    measurement = Measurement(scratch=asked.scratch)
    shutil.rmtree(FOLDER, ignore_errors=True)
    damaged = {model: damage(model, asked.flips, asked.edits) for model in DAMAGED}
    kills = {model: killed(model) for model in KILLED}
    others = {"full disk": full_disk(), "read-only": read_only(), "two trainings": two_at_once()}
    wrong = sum(count for ends in damaged.values() for end, count in ends.items() if end not in ("refused", "same"))
    bars = [
        bar("damages that were neither refused by name nor harmless", wrong, 0),
        bar("killed trainings that did not end bit-equal", sum(one < 0 for one in kills.values()), 0),
        bar("other trials that failed", sum(not one for one in others.values()), 0),
    ]
    print(damaged, kills, others, *lines(bars), sep="\n")
    result = {"command": "make torture", "damage": damaged, "kills": kills, "others": others, "bars": bars}
    measurement.keep("torture", result)
    shutil.rmtree(FOLDER, ignore_errors=True)
    conclude(bars)


if __name__ == "__main__":
    main()
