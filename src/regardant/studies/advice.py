"""Advice on whether to use a Transformer, from short trainings of one and of a simpler model on the user's data.

Lectures advise against a Transformer below 10,000 examples, for answers in real time and on small machines. Here the
measurement decides: a Transformer is advised if its worst score is better than the best score of the simpler model.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regardant.config import recipe as document_of
from regardant.data.tables import plain_suffix
from regardant.errors import ConfigError, DataError
from regardant.run.folder import Record
from regardant.run.training import train_in_turn
from regardant.tasks import load_recipe
from regardant.tasks.base import Log
from regardant.training.devices import the_device
from regardant.training.metrics import Metric

SEEDS = (1, 2)
FEW = 10_000
"""Examples below which lectures advise against a Transformer."""

TABLES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
TEXTS = (".txt", ".md", ".py")


@dataclass(frozen=True)
class BaselineComparison:
    """A recipe for the data, with the model that a Transformer is compared with."""

    recipe: str
    simpler: str
    """Name of the simpler model, for display."""
    settings: Sequence[str]
    """Overrides that choose the simpler model."""
    counts_items: bool = True
    """True if a target of training is an item. False: it is a token."""


BASELINE_COMPARISONS = {
    "table": BaselineComparison("classification", "a bag of word vectors", ("model.kind=bag",)),
    "images": BaselineComparison("image_classification", "a convolutional network", ("model.kind=convolutional",)),
    "text": BaselineComparison("language_modelling", "an LSTM", ("model={kind: recurrent}",), counts_items=False),
}


@dataclass(frozen=True)
class Advice:
    """Measurements of both models, and the advice that follows."""

    comparison: BaselineComparison
    metric: Metric
    scores: dict[str, list[float]]
    """Best validation scores of both models, by seed."""
    speeds: dict[str, float]
    """Targets trained on per second, by model, from the plan of the last seed."""
    memory: dict[str, int]
    """Peak memory of a training [bytes], by model, from the plan of the last seed."""
    targets: int
    """Targets of an epoch, in `unit`."""
    unit: str
    minutes: float

    @property
    def advised(self) -> bool:
        """True if every score of the Transformer is better than every score of the simpler model."""
        worst = min(map(self.metric.score, self.scores["Transformer"]))
        return worst > max(map(self.metric.score, self.scores[self.comparison.simpler]))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        return {
            "advised": self.advised,
            "recipe": self.comparison.recipe,
            "metric": self.metric.name,
            "scores": self.scores,
            "targets_per_second": self.speeds,
            "memory_bytes": self.memory,
            "targets": self.targets,
            "unit": self.unit,
            "reasons": self.lines(),
        }

    def lines(self) -> list[str]:
        """Return the lines to print, the answer first."""
        simpler = self.comparison.simpler
        answer = "yes, a Transformer" if self.advised else f"no, it is not clearly better than {simpler}"
        is_small = self.comparison.counts_items and self.targets < FEW
        few = f"; lectures advise against a Transformer below {FEW:,}" if is_small else ""
        device = "an accelerator" if the_device().type != "cpu" else f"{os.cpu_count()} CPU cores"
        found = [
            f"answer          {answer}, after {self.minutes:.1f} minutes of training each on {device}",
            f"data            {self.targets:,} {self.unit}s to train on{few}",
        ]
        width = 2 + max(map(len, self.scores))
        for name, scores in self.scores.items():
            listed = " and ".join(f"{score:.4g}" for score in scores)
            speed, memory = self.speeds[name], self.memory[name] / 2**30
            costs = f"{speed:,.0f} {self.unit}s a second, {memory:.2f} GiB of memory"
            found.append(f"{name:{width}}{self.metric.name} {listed}; {costs}")
        found.append(
            "budget          with more minutes or data the answer may differ: raise --minutes, and run it again"
        )
        return found


def advise(data: Path, folder: Path, minutes: float, overrides: Sequence[str] = (), log: Log = print) -> Advice:
    """Train both models with two seeds each, within about `minutes` in total, and compare them.

    Raises ConfigError for `minutes` that are not above 0, DataError for data of no known kind, KeyboardInterrupt for an
    interrupted training.
    """
    comparison = BASELINE_COMPARISONS[_kind(data)]
    each = minutes / 2 / len(SEEDS)
    if each <= 0:
        raise ConfigError(f"--minutes is {minutes:g}; must be above 0")
    document = document_of(comparison.recipe)
    # Not as an override, which is read as YAML: a path may have " #", or be a number.
    document = {**document, "data": {**document["data"], "source": str(data)}}
    models: dict[str, Sequence[str]] = {comparison.simpler: comparison.settings, "Transformer": ()}
    scores: dict[str, list[float]] = {name: [] for name in models}
    records: dict[str, Record] = {}
    metric = None
    for name, settings in models.items():
        for seed in SEEDS:
            out = folder / f"{'transformer' if name == 'Transformer' else 'simpler'}-{seed}"
            log(f"{out}: {name}, {each:.1f} minutes")
            given = (f"training.max_minutes={each}", f"seed={seed}")
            config = load_recipe(document, [*given, *settings, *overrides], comparison.recipe)
            outcome = train_in_turn(config, out, lambda line: None)
            if not outcome.finished:
                raise KeyboardInterrupt
            metric = outcome.metric
            scores[name].append(outcome.best)
            records[name] = Record.read(out)
    assert metric is not None
    plan = records["Transformer"].plan
    return Advice(
        comparison,
        metric,
        scores,
        {name: record.plan["tokens_per_second"] for name, record in records.items()},
        {name: record.plan["memory_bytes"] for name, record in records.items()},
        plan["tokens_per_epoch"],
        plan["unit"],
        each,
    )


def _kind(data: Path) -> str:
    if data.is_dir():
        return "images"
    if not data.is_file():
        raise DataError(f"there is no {data}: give a table of labelled texts, a text, or a folder of images")
    ending = plain_suffix(data)
    if ending in TABLES:
        return "table"
    if ending in TEXTS:
        return "text"
    raise DataError(
        f"{data} is of no known kind: give a table of labelled texts ({', '.join(TABLES)}), a text "
        f"({', '.join(TEXTS)}) or a folder of images with a folder for each label"
    )
