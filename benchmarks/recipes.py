"""Train recipes as a user would, evaluate them, and keep the scores.

    make bench                                   demo and reverse
    make bench BENCH="multi30k-en-de"            a recipe on data under REGARDANT_DATA
    make bench BENCH="multi30k-en-de:2"          the same from seed 2
    make bench BENCH="ladder/linear@2000"        for 2,000 updates, however long they take

Recipes of benchmarks/families.yaml are measured beside other models: `make bench-families`.
Runs stay in runs/bench/NAME. Results, with commands, machine, versions and commit, are written to
benchmarks/results/NAME.json and to the recipe's header. Since headers are tracked files, commit before measuring more.
"""

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from regardant.config import recipe as document_of
from regardant.run import load
from regardant.training.events import named, read_events

from . import headers
from .bars import bar, conclude, lines
from .multi30k import folder
from .records import REGARDANT, ROOT, Measurement, arguments, machine, set_options

OWN_FILES = ["data.source=train.en.gz", "data.target=train.de.gz"]
"""The fields given to `translation` beside its folder: two raw files and nothing else."""

LEAST_BLEU = {"multi30k-en-de": 41.0, "translation": 40.0}
"""Least BLEU of test2016 from every seed, by recipe."""


@dataclass(frozen=True)
class Asked:
    """A training to measure."""

    recipe: str
    seed: int = 1
    updates: int | None = None
    """Number of updates in place of the recipe's budget."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the training that RECIPE[@UPDATES][:SEED] names."""
        named, _, seed = text.partition(":")
        recipe, _, updates = named.partition("@")
        return cls(recipe, int(seed or 1), int(updates) if updates else None)

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        updates = f"@{self.updates}" if self.updates else ""
        seed = f":{self.seed}" if self.seed != 1 else ""
        return f"{self.recipe}{updates}{seed}"

    @property
    def name(self) -> str:
        """Name of the run and of the result."""
        updates = f"-{self.updates}-updates" if self.updates else ""
        seed = f"-seed-{self.seed}" if self.seed != 1 else ""
        return f"{self.recipe}{updates}{seed}"

    @property
    def run(self) -> Path:
        """Folder of the run."""
        return ROOT / "runs" / "bench" / self.name

    def commands(self) -> tuple[list[str], list[str]]:
        """Return the arguments that train and those that evaluate. Translators are compared in one engine."""
        train = ["train", self.recipe, "--out", str(self.run), "--set", f"seed={self.seed}"]
        evaluate = ["evaluate", str(self.run), "--json"]
        if document_of(self.recipe)["task"] == "translation":
            evaluate += ["--engine", "torch"]
        if self.updates:
            train += ["--set", "training.max_minutes=null", "--set", f"training.max_updates={self.updates}"]
        if self.recipe == "translation":
            root = folder()
            train += set_options([f"data.root={root}", *OWN_FILES])
            evaluate += ["--data", str(root / "test2016.en.gz"), "--data", str(root / "test2016.de.gz")]
        return train, evaluate


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("recipes", nargs="*", default=["demo", "reverse"], help="RECIPE[@UPDATES][:SEED]")
    asked = parser.parse_args(given)
    measurement = Measurement(scratch=asked.scratch)
    judged = [one for name in asked.recipes for one in measure(Asked.parse(name), measurement)]
    print(*lines(judged), sep="\n")
    conclude(judged)


def bars(asked: Asked, scores: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the bar of a recipe that has one, trained as it is."""
    if asked.recipe in LEAST_BLEU and asked.updates is None:
        name = f"BLEU of {asked.recipe}, seed {asked.seed}"
        yield bar(name, scores["bleu"], LEAST_BLEU[asked.recipe], at_least=True)


def measure(asked: Asked, measurement: Measurement) -> list[dict[str, Any]]:
    """Train, evaluate and write the result of one recipe. Return its bars."""
    shutil.rmtree(asked.run, ignore_errors=True)
    train, evaluate = asked.commands()
    seconds = timed(train)
    scores = json_of(evaluate)
    judged = list(bars(asked, scores))
    result = {
        "command": f'make bench BENCH="{asked}"',
        "recipe": asked.recipe,
        "settings": settings_of(asked.recipe),
        "seed": asked.seed,
        "train": shown(train),
        "evaluate": shown(evaluate),
        "wall_seconds": round(seconds, 1),
        **training_numbers(asked.run),
        **planned_numbers(asked.run),
        "scores": scores,
        "bars": judged,
    }
    print(f"{asked.name}: {headers.score_of(result)}, {seconds / 60:.1f} minutes")
    measurement.keep(asked.name, result)
    if asked == Asked(asked.recipe) and not measurement.scratch:
        headers.write(result | {"machine": machine(), "commit": measurement.commit})
    return judged


def settings_of(recipe: str) -> str:
    """Return a digest of a recipe, without its comments."""
    return digest(document_of(recipe))


def digest(settings: Any) -> str:
    """Return a digest of settings, by which a result names them."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def json_of(command: Sequence[str | Path]) -> dict[str, Any]:
    """Run a command of `regardant` and return the object that its option --json prints."""
    found: dict[str, Any] = json.loads(
        subprocess.run([REGARDANT, *command], check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    return found


def timed(command: list[str]) -> float:
    """Run a command of `regardant` and return its wall time in seconds."""
    start = time.perf_counter()
    subprocess.run([REGARDANT, *command], check=True)
    return time.perf_counter() - start


def training_numbers(run: Path) -> dict[str, Any]:
    """Return the numbers of metrics.jsonl that results hold."""
    events = read_events(run / "metrics.jsonl")
    updates, validations = named(events, "train"), named(events, "validation")
    speeds = sorted(event["tokens_per_second"] for event in updates)
    return {
        "training_seconds": round(events[-1]["time"], 1),
        "validation_seconds": round(sum(event["took"] for event in validations), 1),
        "updates": updates[-1]["update"],
        "epochs": updates[-1]["epoch"] + 1,
        "median_tokens_per_second": speeds[len(speeds) // 2],
        "memory_bytes": max(event["memory_bytes"] for event in updates),
        "best_validation": validations[-1].get("best_bleu"),
        "lowest_validation_loss": min(event["loss"] for event in validations),
        "validations": [
            {"minutes": round(event["time"] / 60, 2), "loss": event["loss"], "bleu": event.get("bleu")}
            for event in validations
        ],
    }


def planned_numbers(run: Path) -> dict[str, Any]:
    """Return the numbers that results hold of a plan, and the settings that were decided with it."""
    record = load(run).record
    return {
        "announced_seconds": round(record.plan["seconds"], 1),
        "announced_updates": record.plan["updates"],
        "parameters": record.plan["parameters"],
        "decided": record.decided.as_dict(),
    }


def shown(command: list[str]) -> str:
    """Return a command as a reader would type it."""
    typed = " ".join(["regardant", *command]).replace(f"{ROOT}/", "")
    return typed.replace(os.environ.get("REGARDANT_DATA", "\0"), "$REGARDANT_DATA")


if __name__ == "__main__":
    main()
