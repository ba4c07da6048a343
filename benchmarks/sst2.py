"""Classifiers of SST-2 side by side: accuracy on dev.tsv, each from three seeds.

    make bench-sst2

A Transformer encoder (recipe `sst2`), an LSTM and a bag of words by one override of it, the encoder of `sst2-masked`
fine-tuned (`sst2-pretrained`), and TF-IDF with logistic regression. Runs stay in runs/bench/sst2 until
the next measurement. The result is benchmarks/results/sst2-classifiers.json.
"""

import json
import shutil
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regardant.run import load

from . import sst2_baseline
from .bars import bar, conclude, lines
from .recipes import REGARDANT, shown, timed
from .records import ROOT, Measurement, arguments

RUNS = ROOT / "runs" / "bench" / "sst2"

SEEDS = (1, 2, 3)

SCRATCH, PRETRAINED, BASELINE = "Transformer", "Transformer, pre-trained", "TF-IDF, logistic regression"

MODELS = {
    SCRATCH: ["sst2"],
    "LSTM": ["sst2", "--set", "model.kind=recurrent"],
    "bag of words": ["sst2", "--set", "model.kind=bag"],
    PRETRAINED: ["sst2-pretrained", "--set", f"training.from={RUNS / 'masked'}"],
}
"""Arguments of `train` by the name of the model."""

ACCURACY, GAIN = 0.78, 0.01
"""Least accuracy of the Transformer from scratch; the goal of pre-training over it. Means of all seeds."""


def main(given: Sequence[str] | None = None) -> None:
    measurement = Measurement(scratch=arguments(__doc__).parse_args(given).scratch)
    baseline = sst2_baseline.measure()  # first, since it asks for the data in a second
    shutil.rmtree(RUNS, ignore_errors=True)
    pretraining = trained(["sst2-masked"], RUNS / "masked")
    models = {name: measured(name, command) for name, command in MODELS.items()}
    print(*table(models, baseline), sep="\n")
    bars = list(bars_of(models))
    measurement.keep(
        "sst2-classifiers",
        {"dev_accuracy": models, "pretraining": pretraining, "baseline": baseline, "bars": bars},
    )
    print(*lines(bars), sep="\n")
    conclude(bars)


def measured(name: str, command: list[str]) -> dict[str, Any]:
    """Train a model from all seeds, and return its accuracies on dev.tsv with their mean."""
    folder = RUNS / name.lower().replace(" ", "-").replace(",", "")
    runs = [trained([*command, "--set", f"seed={seed}"], folder / f"seed-{seed}") for seed in SEEDS]
    accuracies = [run["scores"]["accuracy"] for run in runs]
    return {
        "mean": round(statistics.mean(accuracies), 4),
        "deviation": round(statistics.stdev(accuracies), 4),
        "runs": runs,
    }


def trained(command: list[str], run: Path) -> dict[str, Any]:
    """Train into a folder and evaluate: on the test set of the recipe if it has one."""
    train = ["train", *command, "--out", str(run)]
    seconds = timed(train)
    evaluated = subprocess.run([REGARDANT, "evaluate", str(run), "--json"], check=True, capture_output=True, text=True)
    record = load(run).record
    return {
        "train": shown(train),
        "wall_seconds": round(seconds, 1),
        "parameters": record.plan["parameters"],
        "decided": record.decided.as_dict(),
        "scores": json.loads(evaluated.stdout),
    }


def table(models: dict[str, Any], baseline: dict[str, Any]) -> Iterator[str]:
    """Format one row for each model, as Markdown."""
    yield "| model | accuracy on dev.tsv, mean | by seed | parameters | minutes |"
    yield "|---|---|---|---|---|"
    for name, model in models.items():
        runs = model["runs"]
        by_seed = ", ".join(f"{run['scores']['accuracy']:.4f}" for run in runs)
        minutes = statistics.mean(run["wall_seconds"] for run in runs) / 60
        yield f"| {name} | {model['mean']:.4f} | {by_seed} | {runs[0]['parameters']:,} | {minutes:.1f} |"
    yield (
        f"| {BASELINE} | {baseline['accuracy']:.4f} | - | {baseline['features']:,} | {baseline['seconds'] / 60:.1f} |"
    )


def bars_of(models: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the bar of training from scratch, and the goal of pre-training."""
    mean = {name: model["mean"] for name, model in models.items()}
    yield bar(f"accuracy of the {SCRATCH} from scratch", mean[SCRATCH], ACCURACY, at_least=True)
    gain = round(mean[PRETRAINED] - mean[SCRATCH], 4)
    yield bar("accuracy of pre-training over from scratch", gain, GAIN, at_least=True, goal=True)


if __name__ == "__main__":
    main()
