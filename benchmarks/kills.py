"""Trainings that are killed at random moments, and must end bit-equal to those that are not."""

import shutil
import subprocess
import time
from pathlib import Path
from random import Random
from typing import Any

from .trainings import OFTEN, command, quietly, weights

UPDATES = 120
"""Updates of each training. A checkpoint is written after every one."""

EARLY = 3
"""One kill in EARLY comes at any time, most likely during start-up; the others come while updates are made."""

MOST_TRAININGS = 3
"""Trainings for each kill that is asked for, after which no more are killed: each may end before its kill."""

PATIENCE = 300.0
"""Seconds after which a training is given up."""


def killed(model: str, folder: Path, kills: int) -> dict[str, Any]:
    """Return the number of kills of a training, the updates after which they came, and whether it ended bit-equal to
    one without any."""
    random, whole, parts = Random(model), folder / "whole", folder / "killed"
    began = time.monotonic()
    done = quietly(command(model, whole, UPDATES, OFTEN))
    assert done.returncode == 0, done.stderr
    took = time.monotonic() - began
    made: list[int] = []
    runs, equal = 0, True
    while len(made) < kills and runs < MOST_TRAININGS * kills:
        runs += 1
        shutil.rmtree(parts, ignore_errors=True)
        while len(made) < kills and _kill_once(model, parts, random, took, kills, len(made)):
            made.append(_update(parts))
        done = quietly(command(model, parts, UPDATES, OFTEN), timeout=PATIENCE)
        equal &= done.returncode == 0 and weights(parts) == weights(whole)
    return {"kills": len(made), "after_updates": made, "trainings": runs, "bit_equal": equal}


def _kill_once(model: str, folder: Path, random: Random, took: float, kills: int, number: int) -> bool:
    """Start a training and kill it. Return False if it ended before."""
    before = _newest(folder)
    words = command(model, folder, UPDATES, OFTEN)
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + PATIENCE
        if number % EARLY:  # wait for its first checkpoint
            while _newest(folder) == before and process.poll() is None and time.monotonic() < end:
                time.sleep(0.005)
            seconds = random.uniform(0, 0.2 * took / kills)
        else:
            seconds = random.uniform(0.1, 0.9) * took
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return True
        return False


def _newest(folder: Path) -> str:
    return max((path.name for path in folder.glob("checkpoints/*.pt")), default="")


def _update(folder: Path) -> int:
    """Return the update of the newest checkpoint, or 0 if there is none."""
    return int("0" + "".join(filter(str.isdecimal, _newest(folder))))
