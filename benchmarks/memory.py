"""Memory of a training: the prediction of `plan` compared with the measurement.

    make bench-memory
    make bench-memory BENCH="demo multi30k-en-de"    these recipes alone, written to runs/scratch

Two hundred updates of each recipe with their validations, as `regardant train` runs them: the peaks of the resident
memory of all its processes, libraries counted in each. Recipes on Multi30k and Tiny Shakespeare read REGARDANT_DATA.
Written to benchmarks/results/memory.json.
"""

import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

import yaml

from regardant.training.events import named, peak_bytes, read_events

from .bars import bar, conclude, lines, rounded
from .records import REGARDANT, ROOT, Measurement, arguments, set_options

RECIPES = ["demo", "reverse", "multi30k-en-de", "ladder/gru-bahdanau", "shakespeare"]
"""Small and large vocabularies, a recurrent model, a decoder-only model."""

SHORT = {"max_minutes": "null", "max_updates": 200, "validate_every": 60}
"""Training fields in place of the recipe's. Memory may still grow afterwards."""

OFF_BY = 0.2
"""Largest relative difference between a plan and the measurement."""


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("recipes", nargs="*", help=f"default: {' '.join(RECIPES)}")
    asked = parser.parse_args(given)
    measurement = Measurement(scratch=asked.scratch or bool(asked.recipes))
    found = {recipe: measured(recipe) for recipe in asked.recipes or RECIPES}
    bars = [
        bar(f"relative error of the plan of {recipe}", abs(one["planned"] / one["measured"] - 1), OFF_BY)
        for recipe, one in found.items()
    ]
    print(
        *(f"{name:22}{one['planned']:7.2f} GiB planned, {one['measured']:.2f} measured" for name, one in found.items()),
        *lines(bars),
        sep="\n",
    )
    measurement.keep("memory", {"command": "make bench-memory", "recipes": found, "bars": bars})
    conclude(bars)


def measured(recipe: str) -> dict[str, Any]:
    """Return the GiB of a short training, as planned and as measured."""
    run = ROOT / "runs" / "bench-memory" / recipe
    shutil.rmtree(run, ignore_errors=True)
    given = set_options(f"training.{name}={value}" for name, value in SHORT.items())
    subprocess.run([REGARDANT, "train", recipe, "--out", run, *given], check=True, stdout=subprocess.DEVNULL)
    record = yaml.safe_load((run / "run.yaml").read_text(encoding="utf-8"))
    updates = named(read_events(run / "metrics.jsonl"), "train")
    return {
        "planned": rounded(record["plan"]["memory_bytes"] / 2**30),
        "measured": rounded(peak_bytes(updates) / 2**30),
        "after_ten_updates": rounded(peak_bytes(updates[:1]) / 2**30),
        "processes": record["decided"]["processes"],
        "precision": record["decided"]["precision"],
        "parameters": record["plan"]["parameters"],
    }


if __name__ == "__main__":
    main()
