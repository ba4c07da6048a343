"""Train recipes as a user would, evaluate them, and keep what came out.

    make bench                                   demo and reverse
    make bench BENCH="multi30k-en-de"            a recipe on data of yours, under REGARDANT_DATA
    make bench BENCH="multi30k-en-de:2"          the same from seed 2
    make bench BENCH="ladder/linear@2000"        for that many updates, however long they take

Runs stay in runs/bench/NAME, results in benchmarks/results/NAME.json, with commands, machine, versions and commit; the
recipe's header says the same.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from regardant.run import load

from . import headers
from .records import RESULTS, ROOT, commit, keep, machine

REGARDANT = ROOT / ".venv" / "bin" / "regardant"

DATA = {
    "multi30k-en-de": "multi30k",
    "multi30k-en-de-raw": "multi30k",
    "multi30k-en-fr": "multi30k",
    "translation": "multi30k",
    "shakespeare": "tinyshakespeare",
    "shakespeare-nanogpt": "tinyshakespeare",
}
"""The folder under REGARDANT_DATA that a recipe reads."""

OWN_FILES = ["data.source=train.en.gz", "data.target=train.de.gz"]
"""What `translation` is given: two raw files and nothing else."""


@dataclass(frozen=True)
class Asked:
    """A training to measure."""

    recipe: str
    seed: int = 1
    updates: int | None = None
    """In place of the recipe's budget."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """RECIPE, with @UPDATES and :SEED where they are not the recipe's own."""
        named, _, seed = text.partition(":")
        recipe, _, updates = named.partition("@")
        return cls(recipe, int(seed or 1), int(updates) if updates else None)

    @property
    def name(self) -> str:
        """Of the run and of the result."""
        updates = f"-{self.updates}-updates" if self.updates else ""
        seed = f"-seed-{self.seed}" if self.seed != 1 else ""
        return f"{self.recipe}{updates}{seed}"

    @property
    def run(self) -> Path:
        return ROOT / "runs" / "bench" / self.name

    @property
    def result(self) -> Path:
        return RESULTS / f"{self.name}.json"

    def commands(self) -> tuple[list[str], list[str]]:
        """What trains and what evaluates."""
        train = ["train", self.recipe, "--out", str(self.run), "--set", f"seed={self.seed}"]
        evaluate = ["evaluate", str(self.run), "--json"]
        if self.updates:
            train += ["--set", "training.max_minutes=null", "--set", f"training.max_updates={self.updates}"]
        folder = "multi30k" if self.recipe.startswith("ladder/") else DATA.get(self.recipe)
        if folder is None:
            return train, evaluate
        if "REGARDANT_DATA" not in os.environ:
            sys.exit(f"{self.recipe} reads {folder}: set REGARDANT_DATA to the folder that holds it")
        root = Path(os.environ["REGARDANT_DATA"]) / folder
        train += ["--set", f"data.root={root}"]
        if self.recipe == "translation":
            train += [argument for field in OWN_FILES for argument in ("--set", field)]
            evaluate += ["--data", str(root / "test2016.en.gz"), "--data", str(root / "test2016.de.gz")]
        return train, evaluate


def main(named: list[str]) -> None:
    for name in named or ["demo", "reverse"]:
        measure(Asked.parse(name))


def measure(asked: Asked) -> None:
    """Train, evaluate and write the result of one recipe."""
    shutil.rmtree(asked.run, ignore_errors=True)
    start, (train, evaluate) = commit(), asked.commands()
    seconds = timed(train)
    scores = json.loads(subprocess.run([REGARDANT, *evaluate], check=True, capture_output=True, text=True).stdout)
    record = load(asked.run).record
    result = {
        "recipe": asked.recipe,
        "seed": asked.seed,
        "train": shown(train),
        "evaluate": shown(evaluate),
        "wall_seconds": round(seconds, 1),
        **training_numbers(asked.run),
        "parameters": record.plan["parameters"],
        "decided": record.decided.as_dict(),
        "scores": scores,
        "machine": machine(),
        "commit": start,
    }
    print(f"{asked.name}: {headers.score_of(result)}, {seconds / 60:.1f} minutes")
    keep(asked.result, result)
    if asked == Asked(asked.recipe):
        headers.write(result)


def timed(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([REGARDANT, *arguments], check=True)
    return time.perf_counter() - start


def training_numbers(run: Path) -> dict[str, Any]:
    """What metrics.jsonl says of the training."""
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    updates = [event for event in events if event["event"] == "train"]
    validations = [event for event in events if event["event"] == "validation"]
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


def shown(arguments: list[str]) -> str:
    """The command as a reader would type it."""
    told = " ".join(["regardant", *arguments]).replace(f"{ROOT}/", "")
    return told.replace(os.environ.get("REGARDANT_DATA", "\0"), "$REGARDANT_DATA")


if __name__ == "__main__":
    main(sys.argv[1:])
