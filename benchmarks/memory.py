"""What `plan` says a training will hold, against what it is seen to hold.

    make bench-memory
    make bench-memory BENCH="demo multi30k-en-de"

Two hundred updates of each recipe with their validations, as `regardant train` runs them: resident memory of all its
processes, libraries counted in each. Recipes on Multi30k and Tiny Shakespeare read REGARDANT_DATA. Lands in
benchmarks/results/memory.json.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from regardant.training.reporting import read_events

from .bars import bar, rounded, told
from .recipes import DATA, REGARDANT
from .records import RESULTS, ROOT, commit, keep, machine

RECIPES = ["demo", "reverse", "multi30k-en-de", "ladder/gru-bahdanau", "shakespeare"]
"""Small and large vocabularies, a recurrent model, a decoder alone."""

FOLDERS = DATA | {"ladder/gru-bahdanau": "multi30k", "shakespeare": "tinyshakespeare"}
"""Under REGARDANT_DATA."""

SHORT = {"max_minutes": "null", "max_updates": 200, "validate_every": 60}
"""Of training, in place of the recipe's. Thousands of updates come to hold up to a third more."""

OFF_BY = 0.2
"""The most that a plan may differ from what is measured."""


def main(named: list[str]) -> None:
    start, found = commit(), {recipe: measured(recipe) for recipe in named or RECIPES}
    bars = [
        bar(f"share by which the plan of {recipe} is off", abs(one["planned"] / one["measured"] - 1), OFF_BY)
        for recipe, one in found.items()
    ]
    print(
        *(f"{name:22}{one['planned']:7.2f} GiB planned, {one['measured']:.2f} measured" for name, one in found.items()),
        *told(bars),
        sep="\n",
    )
    result = {"command": "make bench-memory", "recipes": found, "bars": bars, "machine": machine(), "commit": start}
    keep(RESULTS / "memory.json", result)


def measured(recipe: str) -> dict[str, Any]:
    """GiB of a short training, as planned and as seen."""
    run = ROOT / "runs" / "bench-memory" / recipe
    shutil.rmtree(run, ignore_errors=True)
    overrides = [f"training.{name}={value}" for name, value in SHORT.items()]
    if recipe in FOLDERS:
        if "REGARDANT_DATA" not in os.environ:
            sys.exit(f"{recipe} reads {FOLDERS[recipe]}: set REGARDANT_DATA to the folder that holds it")
        overrides.append(f"data.root={Path(os.environ['REGARDANT_DATA']) / FOLDERS[recipe]}")
    sets = [argument for one in overrides for argument in ("--set", one)]
    subprocess.run([REGARDANT, "train", recipe, "--out", run, *sets], check=True, stdout=subprocess.DEVNULL)
    record = yaml.safe_load((run / "run.yaml").read_text(encoding="utf-8"))
    seen = [event["memory_bytes"] for event in read_events(run / "metrics.jsonl") if event["event"] == "train"]
    return {
        "planned": rounded(record["plan"]["memory_bytes"] / 2**30),
        "measured": rounded(max(seen) / 2**30),
        "after_ten_updates": rounded(seen[0] / 2**30),
        "processes": record["decided"]["processes"],
        "precision": record["decided"]["precision"],
        "parameters": record["plan"]["parameters"],
    }


if __name__ == "__main__":
    main(sys.argv[1:])
