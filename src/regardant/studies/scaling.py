"""Sweeps over model size, data or compute, with a power law fitted to the losses.

FOLDER/budget-BY.json     minutes of the sweep, and the updates of its largest training
FOLDER/NAME-SEED/         the run of a point; a resumed sweep does not train finished points again
"""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, Literal

from regardant.errors import ConfigError, RunError
from regardant.evaluation.power_law import PowerLaw, fit_power_law
from regardant.files import write_atomically
from regardant.pictures import Chapter, Curve, Table, line_chart, report_page
from regardant.run.folder import Record
from regardant.run.training import plan, train_in_turn
from regardant.studies.resumed import naming_damage, require_minutes
from regardant.studies.tuning import OF_BUDGET, Load, value_at
from regardant.tasks.base import Log, TaskConfig
from regardant.tasks.training_history import read_history

ScaledQuantity = Literal["size", "data", "compute"]

FACTORS = (1 / 8, 1 / 4, 1 / 2, 1.0)
"""Shares of the swept quantity, relative to the recipe's own value, which is the largest."""

WIDTHS = ("model.d_model", "model.d_ff", "model.hidden_size", "model.embedding_size")
"""Fields that grow together with the size of a model, by the square root of its parameters."""

SEEDS = 3

LEAST_UPDATES = 8
"""Minimum number of updates of the longest training."""

UNITS = {"size": "parameters", "data": "training items", "compute": "FLOPs of training"}


@dataclass(frozen=True)
class Point:
    """One training of a sweep."""

    name: str
    """The swept quantity and the share of it, equal for all seeds of a share."""
    x: float
    seed: int
    loss: float
    """Lowest validation loss per target, in the unit of the loss."""


@dataclass(frozen=True)
class Scaling:
    """Points of a sweep, and the power law fitted to them."""

    by: ScaledQuantity
    points: list[Point]
    law: PowerLaw

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        return {"by": self.by, "law": self.law.as_dict(), "points": [vars(point) for point in self.points]}

    def lines(self) -> list[str]:
        """Return the lines to print."""
        table = [
            f"{point.x:14,.4g} {UNITS[self.by]}  seed {point.seed}  loss {point.loss:.4f}" for point in self.points
        ]
        return [*table, *self.law.lines(), self.verdict()]

    def verdict(self) -> str:
        """Return a sentence that says whether the losses change with x. R squared says how near a power law is."""
        low, high = self.law.interval
        if low <= 0 <= high:
            return "no trend is shown: the interval of the exponent contains 0"
        return f"the losses {'fall' if low > 0 else 'rise'} with {self.by}"

    def page(self, recipe: str) -> str:
        """Return an offline HTML page with the points and the line."""
        seeds = sorted({point.seed for point in self.points})
        curves = [
            Curve(
                f"seed {seed}", [(math.log10(one.x), math.log10(one.loss)) for one in self.points if one.seed == seed]
            )
            for seed in seeds
        ]
        ends = [min(point.x for point in self.points), max(point.x for point in self.points)]
        curves.append(Curve("fit", [(math.log10(x), math.log10(self.law.loss(x))) for x in ends]))
        chart = line_chart(
            curves,
            title=f"Loss by {self.by}",
            x_label=f"{UNITS[self.by]}, log10",
            y_label="validation loss, log10",
            from_zero=False,  # a sweep spans about one unit of the logarithm
        )
        rows = [[one.name, f"{one.x:,.4g}", str(one.seed), f"{one.loss:.4f}"] for one in self.points]
        table = Table("Points", ("point", UNITS[self.by], "seed", "loss"), rows)
        return report_page(
            [Chapter("Fit", [*self.law.lines(), self.verdict()], [chart]), Chapter("Points", [], [table])],
            title=f"Scaling of {recipe} by {self.by}",
        )


def scale(load: Load, folder: Path, by: ScaledQuantity, minutes: float, log: Log = print) -> Scaling:
    """Train four points with three seeds each, within about `minutes`, and fit a power law.

    There is no fit with a floor if two points have the same size, as widths of a small model may round to one number.

    Raises ConfigError for a recipe without the field that is swept, KeyboardInterrupt for an interrupted sweep.
    """
    base, updates = _budget(load, folder, by, minutes, log)
    points = []
    for factor in FACTORS:
        settings = _settings(base, by, factor, updates)
        for seed in range(base.seed, base.seed + SEEDS):
            name = f"{by}-{factor:g}"
            out = folder / f"{name}-{seed}"
            config = load([*settings, f"seed={seed}"])
            if not train_in_turn(config, out, lambda line: None).finished:
                raise KeyboardInterrupt
            points.append(_point(name, out, by, seed))
            log(f"{name:14} seed {seed}  {points[-1].x:,.4g} {UNITS[by]}  loss {points[-1].loss:.4f}")
    return Scaling(by, points, fit_points(points))


def fit_points(points: Sequence[Point]) -> PowerLaw:
    """Fit a power law to points, each at the mean x of the points of its name.

    The parameters and the FLOPs of a share differ between seeds, whose vocabularies and batches differ. With an x for
    each seed, the seeds of a share would count as independent sizes, and the interval would be too narrow.
    """
    seeds: dict[str, list[float]] = defaultdict(list)
    for point in points:
        seeds[point.name].append(point.x)
    return fit_power_law([fmean(seeds[point.name]) for point in points], [point.loss for point in points])


def _budget(load: Load, folder: Path, by: ScaledQuantity, minutes: float, log: Log) -> tuple[TaskConfig, int]:
    """Return the recipe with its open settings chosen, and the number of updates of its largest training.

    The number is measured once and kept, so that all points of a resumed sweep are trained alike.
    """
    file = folder / f"budget-{by}.json"
    kept = _kept_updates(file, minutes)
    shares = sum(FACTORS) if by == "compute" else len(FACTORS)
    each = OF_BUDGET * minutes / shares / SEEDS
    with TemporaryDirectory(prefix="regardant-scale-") as temporary:
        config = load([f"training.max_minutes={each:.4f}", "training.max_updates=null", "training.max_epochs=null"])
        prepared, _, planned = plan(config, Path(temporary), lambda line: None)
    updates = planned.updates if kept is None else kept
    if updates < LEAST_UPDATES:
        raise ConfigError(f"--minutes {minutes:g} leaves {updates} updates per training: give more minutes")
    if kept is None:
        write_atomically(file, json.dumps({"minutes": minutes, "updates": updates}) + "\n")
    log(f"{len(FACTORS)} points of {SEEDS} seeds, up to {updates:,} updates each")
    return prepared.config, updates


def _kept_updates(file: Path, minutes: float) -> int | None:
    """Return the updates that an earlier call has kept, None without one. Raises ConfigError for other minutes."""
    if not file.is_file():
        return None
    with naming_damage(file):
        kept = json.loads(file.read_text(encoding="utf-8"))
        begun_with, updates = float(kept["minutes"]), int(kept["updates"])
    require_minutes(file.parent, begun_with, minutes)
    return updates


def _settings(base: TaskConfig, by: ScaledQuantity, factor: float, updates: int) -> list[str]:
    if by == "compute":
        updates = max(1, round(updates * factor))
    found = ["training.max_minutes=null", "training.max_epochs=null", f"training.max_updates={updates}"]
    if by == "size":
        widths = {path: value for path in WIDTHS if isinstance(value := value_at(base, path), int)}
        if not widths:
            raise ConfigError(f"--by size needs a model with one of {', '.join(WIDTHS)}: choose data or compute")
        whole = 2 * (value_at(base, "model.num_heads") or 1)
        sizes = {path: max(whole, round(value * factor**0.5 / whole) * whole) for path, value in widths.items()}
        return [*found, *(f"{path}={size}" for path, size in sizes.items())]
    if by == "data":
        if not isinstance(size := value_at(base, "data.train_size"), int):
            raise ConfigError("--by data needs data with a train_size, as the toys and the grammar have: choose size")
        return [*found, f"data.train_size={max(1, round(size * factor))}"]
    return found


def _point(name: str, out: Path, by: ScaledQuantity, seed: int) -> Point:
    record = Record.read(out)
    history = read_history(out, record.plan, ["loss"])
    losses = [loss for one in history.validations if (loss := one.scores["loss"]) is not None]
    if not losses:
        raise RunError(f"{out} has no validation loss to fit")
    config = record.config
    x = {
        "size": float(record.plan["parameters"]),
        "data": float(value_at(config, "data.train_size") or 0),
        "compute": record.plan["flops_per_token"] * _targets(record),
    }[by]
    return Point(name, x, seed, min(losses))


def _targets(record: Record) -> float:
    """Return the number of targets that a training reads, by its plan."""
    return float(record.plan["epochs"] * record.plan["tokens_per_epoch"])
