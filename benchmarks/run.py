"""Train recipes as a user would, evaluate them, and keep what came out.

    make bench                                   demo and reverse
    make bench BENCH="multi30k-en-de"            a recipe on data of yours, under REGARDANT_DATA
    make bench BENCH="multi30k-en-de:2"          the same from seed 2

Each lands in benchmarks/results/RECIPE[-seed-N].json with its commands, the machine, the versions and the commit.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
REGARDANT = ROOT / ".venv" / "bin" / "regardant"
RESULTS = Path(__file__).parent / "results"

DATA = {
    "multi30k-en-de": "multi30k",
    "multi30k-en-de-raw": "multi30k",
    "multi30k-en-fr": "multi30k",
    "translation": "multi30k",
}
"""The folder under REGARDANT_DATA that a recipe reads."""

OWN_FILES = ["data.source=train.en.gz", "data.target=train.de.gz"]
"""What `translation` is given: two raw files and nothing else."""


def main(named: list[str]) -> None:
    for name in named or ["demo", "reverse"]:
        recipe, _, seed = name.partition(":")
        measure(recipe, int(seed or 1))


def measure(recipe: str, seed: int) -> None:
    """Train, evaluate and write the result of one recipe."""
    run = ROOT / "runs" / f"bench-{recipe}-{seed}"
    shutil.rmtree(run, ignore_errors=True)
    train = ["train", recipe, "--out", str(run), "--set", f"seed={seed}"]
    evaluate = ["evaluate", str(run), "--json"]
    if recipe in DATA:
        if "REGARDANT_DATA" not in os.environ:
            sys.exit(f"{recipe} reads {DATA[recipe]}: set REGARDANT_DATA to the folder that holds it")
        root = Path(os.environ["REGARDANT_DATA"]) / DATA[recipe]
        train += ["--set", f"data.root={root}"]
        if recipe == "translation":
            train += [argument for field in OWN_FILES for argument in ("--set", field)]
            evaluate += ["--data", str(root / "test2016.en.gz"), "--data", str(root / "test2016.de.gz")]
    seconds = timed(train)
    scores = json.loads(subprocess.run([REGARDANT, *evaluate], check=True, capture_output=True, text=True).stdout)
    result = {
        "recipe": recipe,
        "seed": seed,
        "train": shown(train),
        "evaluate": shown(evaluate),
        "wall_seconds": round(seconds, 1),
        **training_numbers(run),
        "scores": scores,
        "machine": machine(),
        "commit": commit(),
    }
    path = RESULTS / (f"{recipe}.json" if seed == 1 else f"{recipe}-seed-{seed}.json")
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: BLEU {scores['bleu']:.2f} after {seconds / 60:.1f} minutes")


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
        "best_validation": validations[-1].get("best_bleu"),
        "lowest_validation_loss": min(event["loss"] for event in validations),
    }


def machine() -> dict[str, Any]:
    import torch

    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
    }


def commit() -> str:
    return subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def shown(arguments: list[str]) -> str:
    """The command as a reader would type it."""
    told = " ".join(["regardant", *arguments]).replace(f"{ROOT}/", "")
    return told.replace(os.environ.get("REGARDANT_DATA", "\0"), "$REGARDANT_DATA")


if __name__ == "__main__":
    main(sys.argv[1:])
