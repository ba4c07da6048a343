"""Sweeps in stages: learning rate, warm-up, batch, dropout, architecture last. Each stage keeps its best value.

A stage trains every value for a short time; Optuna's successive halving decides which of them train for the whole time
(Jamieson and Talwalkar 2016, https://arxiv.org/abs/1502.07943). In the end the best settings and the recipe's own train
with another seed: settings count as better only if they are better with both seeds. The first seed selected them, so
that the other one is the only independent comparison.

FOLDER/tuning.json   minutes and recipe of the sweep; others are refused when it is resumed
FOLDER/tuning.log    Optuna's journal of all trials, from which an interrupted sweep is resumed
FOLDER/NUMBER/       the run of each training
"""

import json
import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.pruners import SuccessiveHalvingPruner
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from regardant.config.differences import differences
from regardant.errors import ConfigError, Diverged, OutOfMemory, RunError
from regardant.files import write_atomically
from regardant.run.folder import Record
from regardant.run.training import train_in_turn
from regardant.studies.resumed import naming_damage
from regardant.tasks.base import Log, TaskConfig
from regardant.training.metrics import Metric, selecting_metric

Load = Callable[[Sequence[str]], TaskConfig]
"""Returns the recipe with overrides `a.b=c`."""

SETTINGS, JOURNAL = "tuning.json", "tuning.log"
SHORT = 1 / 3
"""Share of a whole training that every value gets."""

TRAININGS = 11
"""Whole trainings in the time of a sweep: 1.4 for each of five stages, the recipe's own, two at the end, one spare."""

OF_BUDGET = 0.7
"""Share of the minutes that is training. The rest is preparation."""

LEAST_MINUTES = 0.05
"""Minimum length of a sweep [minutes]."""

SCHEDULE = "training.schedule"
"""Section of the recipe that its task chooses as a whole, where it is left open."""


@dataclass(frozen=True)
class Stage:
    """A setting that is swept, or several that change together."""

    name: str
    paths: Sequence[str]
    """Dotted fields of the recipe. Missing ones are left out."""
    values: Callable[[float], list[float]]
    """Function from the current value of a field to the values to try, as many for each field."""

    def candidates(self, current: Mapping[str, float]) -> list[dict[str, float]]:
        """Return the values to try by field: each field changes from its own current value, and none is repeated."""
        columns = [self.values(value) for value in current.values()]
        found = [dict(zip(current, row, strict=True)) for row in zip(*columns, strict=True)]
        return [one for number, one in enumerate(found) if one not in (current, *found[:number])]


def _times(*factors: float, whole: bool = False, least: float = 0.0) -> Callable[[float], list[float]]:
    def values(current: float) -> list[float]:
        return [max(least, round(current * one) if whole else float(f"{current * one:.3g}")) for one in factors]

    return values


STAGES = (
    Stage("learning rate", ["training.schedule.learning_rate"], _times(1 / 3, 3)),
    Stage("warm-up", ["training.schedule.warmup_steps"], _times(1 / 4, 4, whole=True, least=1)),
    Stage("batch", ["training.batch_tokens"], _times(1 / 2, 2, whole=True, least=64)),
    Stage("dropout", ["model.dropout"], lambda current: [0.0, 0.1, 0.3]),
    Stage(
        "layers",
        ["model.encoder.num_layers", "model.decoder.num_layers", "model.num_layers"],
        lambda current: [max(1, current - 1), current + 1],
    ),
)
"""Stages in the order of the lectures."""


@dataclass(frozen=True)
class Training:
    """One training of a sweep."""

    number: int
    stage: str
    settings: tuple[str, ...]
    """Overrides on the recipe."""
    minutes: float
    seed: int
    score: float
    """Best validation score. Infinity of the worse sign if the training failed."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        return vars(self) | {"settings": list(self.settings), "score": _finite(self.score)}


@dataclass
class Tuned:
    """Result of a sweep."""

    metric: Metric
    trainings: list[Training]
    settings: tuple[str, ...] = ()
    """Overrides of the best whole training. Empty: the recipe's own settings."""
    again: tuple[float, float] | None = None
    """Scores of the recipe's own and of the best settings with another seed. None: no settings were better, or the time
    was up."""
    skipped: list[str] = field(default_factory=list)
    """Reasons why a stage was left out."""

    @property
    def beats(self) -> bool:
        """True if the settings are better than the recipe's own with the seed that selected them and with another."""
        if not self.settings or self.again is None:
            return False
        return self.metric.score(self.again[1]) > self.metric.score(self.again[0])

    def verdict(self) -> str:
        """Return the result in a sentence."""
        if not self.settings:
            return "no setting was better than the recipe's own"
        if self.again is None:
            return "better with the seed that selected them; the time was up before another seed could confirm it"
        own, best = self.again
        scores = f"{self.metric.name} is {best:.4g}, with the recipe's own settings {own:.4g}"
        return f"{'better with another seed as well' if self.beats else 'not confirmed with another seed'}: {scores}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        return {
            "metric": self.metric.name,
            "settings": list(self.settings),
            "beats": self.beats,
            "verdict": self.verdict(),
            "again": None if self.again is None else [_finite(score) for score in self.again],
            "skipped": self.skipped,
            "trainings": [one.as_dict() for one in self.trainings],
        }


class Sweep:
    """Trainings of one sweep. A resumed sweep reads finished trainings from its journal."""

    def __init__(self, load: Load, folder: Path, minutes: float, log: Log) -> None:
        if minutes < LEAST_MINUTES:
            raise ConfigError(f"--minutes is {minutes:g}; must be at least {LEAST_MINUTES:g}")
        recipe = load(())
        folder.mkdir(parents=True, exist_ok=True)
        _require_same(folder, {"minutes": minutes} | recipe.model_dump(mode="json", by_alias=True))
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.storage = JournalStorage(JournalFileBackend(str(folder / JOURNAL)))
        self.load, self.folder, self.log, self.minutes = load, folder, log, minutes
        self.whole = OF_BUDGET * minutes / TRAININGS
        self.seed = recipe.seed
        self.leaves_schedule_open = "schedule" not in recipe.training.model_fields_set
        self.metric: Metric | None = None
        self.made: list[Training] = []

    def study(self, name: str) -> optuna.Study:
        """Return the Optuna study of a stage, loaded from the journal if it exists."""
        return optuna.create_study(
            study_name=name,
            storage=self.storage,
            load_if_exists=True,
            direction="maximize",
            pruner=SuccessiveHalvingPruner(min_resource=1, reduction_factor=3),
        )

    def remaining(self) -> float:
        """Return the minutes that are left, with those of earlier calls counted."""
        spent = sum(
            trial.user_attrs.get("wall", 0.0)
            for one in optuna.get_all_study_names(self.storage)
            for trial in optuna.load_study(study_name=one, storage=self.storage).trials
        )
        return self.minutes - spent

    def score(
        self, study: optuna.Study, stage: str, settings: tuple[str, ...], share: float, seed: int
    ) -> float | None:
        """Return the best validation score of a training, from the journal if it was made. None: the time is up.

        A training that does not fit into memory or diverges has the worst score. The error of the first training, of
        the recipe's own settings, is raised.
        """
        key = " ".join([*settings, f"{share:.3f}", str(seed)])
        for name in optuna.get_all_study_names(self.storage):
            for made in optuna.load_study(study_name=name, storage=self.storage).trials:
                if key in made.user_attrs:
                    return self._known(made.user_attrs[key], stage, settings, share, seed)
        if self.remaining() < self.whole * share:
            return None
        number = 1 + sum(1 for one in self.folder.iterdir() if one.is_dir())
        minutes, started = self.whole * share, time.monotonic()
        try:
            metric, score = self._train(number, settings, minutes, seed)
            result = f"{metric.name} {score:.4g}"
        except (OutOfMemory, Diverged) as error:
            if self.metric is None:
                raise
            metric, score = self.metric, -math.inf if self.metric.higher_is_better else math.inf
            result = f"failed: {error}"
        self.metric = metric
        found = {"score": score, "number": number, "minutes": minutes}
        record = study.ask()
        record.set_user_attr(key, found)
        record.set_user_attr("wall", (time.monotonic() - started) / 60)
        study.tell(record, state=TrialState.PRUNED)  # a record of the training; the sweep's own trial decides
        self.log(f"{number:3}  {stage:14} {minutes:5.2f} min  {result}  {' '.join(settings)}")
        return self._known(found, stage, settings, share, seed)

    def _train(self, number: int, settings: tuple[str, ...], minutes: float, seed: int) -> tuple[Metric, float]:
        """Return the metric of a training and its best score. Raises KeyboardInterrupt for one that is interrupted."""
        out = self.folder / str(number)
        budget = (f"training.max_minutes={minutes:.4f}", "training.max_updates=null", "training.max_epochs=null")
        config = self.load([*settings, *budget, f"seed={seed}"])
        try:
            outcome = train_in_turn(config, out, lambda line: None)
        finally:
            shutil.rmtree(out / "checkpoints", ignore_errors=True)
        if not outcome.finished:
            shutil.rmtree(out)
            raise KeyboardInterrupt
        return outcome.metric, outcome.best

    def _known(self, found: dict[str, Any], stage: str, settings: tuple[str, ...], share: float, seed: int) -> float:
        if self.metric is None:
            self.metric = self._metric(found["number"])
        if all(one.number != found["number"] for one in self.made):
            self.made.append(Training(found["number"], stage, settings, found["minutes"], seed, found["score"]))
        return float(found["score"])

    def _metric(self, number: int) -> Metric:
        config = Record.read(self.folder / str(number)).config
        return selecting_metric(config.metrics, config.training.best_by)


def tune(load: Load, folder: Path, minutes: float, log: Log = print) -> Tuned:
    """Sweep the stages within about `minutes`; the same call resumes an interrupted sweep.

    Raises ConfigError for too few minutes and for a folder that was begun with other settings, KeyboardInterrupt for an
    interrupted training.
    """
    sweep = Sweep(load, folder, minutes, log)
    first = sweep.study("recipe")
    own = sweep.score(first, "recipe", (), 1.0, sweep.seed)
    assert own is not None and sweep.metric is not None
    tuned = Tuned(sweep.metric, sweep.made)
    best = own
    for stage in STAGES:
        best = _run_stage(sweep, stage, tuned, best)
    if tuned.settings:
        scores = [sweep.score(first, "other seed", one, 1.0, sweep.seed + 1) for one in ((), tuned.settings)]
        if scores[0] is not None and scores[1] is not None:
            tuned.again = scores[0], scores[1]
    return tuned


def _run_stage(sweep: Sweep, stage: Stage, tuned: Tuned, best: float) -> float:
    """Sweep one setting from the settings found so far; return the best score of a whole training."""
    resolved = Record.read(sweep.folder / str(sweep.made[0].number)).config
    paths = {path: value for path in stage.paths if isinstance(value := value_at(resolved, path), int | float)}
    if not paths:
        tuned.skipped.append(f"{stage.name}: the recipe has no {' or '.join(stage.paths)}")
        return best
    chosen = dict(one.split("=", 1) for one in tuned.settings)
    current = {path: float(chosen.get(path, value)) for path, value in paths.items()}
    whole = all(isinstance(value, int) for value in paths.values())
    study, sign = sweep.study(stage.name), 1 if tuned.metric.higher_is_better else -1
    start = tuned.settings
    if sweep.leaves_schedule_open and all(path.startswith(SCHEDULE) for path in paths):
        start = _with_schedule(start, resolved)
    for values in [current, *stage.candidates(current)]:
        changed = {path: str(int(value)) if whole else f"{value:g}" for path, value in values.items()}
        settings = start if values == current else _with(start, changed)
        short = sweep.score(study, stage.name, settings, SHORT, sweep.seed)
        if short is None:
            tuned.skipped.append(f"{stage.name}: the time was up")
            return best
        if values == current:
            _report(study, sign * short, sign * best)
            continue
        trial = study.ask()
        trial.report(sign * short if math.isfinite(short) else -math.inf, 1)
        if trial.should_prune():
            study.tell(trial, state=TrialState.PRUNED)
            continue
        long = sweep.score(study, stage.name, settings, 1.0, sweep.seed)
        if long is None:
            study.tell(trial, state=TrialState.PRUNED)
            tuned.skipped.append(f"{stage.name}: the time was up")
            return best
        trial.report(sign * long, 3)
        study.tell(trial, sign * long)
        if sign * long > sign * best:
            best, tuned.settings = long, settings
    return best


def _report(study: optuna.Study, short: float, whole: float) -> None:
    """Report the current settings, which are trained for the whole time, as the trial that others are compared with."""
    trial = study.ask()
    for step, score in ((1, short), (3, whole)):
        trial.report(score, step)
        trial.should_prune()  # enters the score among those that others are compared with
    study.tell(trial, whole)


def _with_schedule(settings: tuple[str, ...], resolved: TaskConfig) -> tuple[str, ...]:
    """Return settings with each field of the schedule that was chosen. A task chooses none where one of its fields is
    given, so that the others would fall back to their defaults."""
    given = {one.split("=", 1)[0] for one in settings}
    chosen = {f"{SCHEDULE}.{name}": value for name, value in resolved.training.schedule.model_dump().items()}
    return (*settings, *(f"{path}={value}" for path, value in chosen.items() if path not in given))


def _with(settings: tuple[str, ...], changed: dict[str, str]) -> tuple[str, ...]:
    kept = [one for one in settings if one.split("=", 1)[0] not in changed]
    return (*kept, *(f"{path}={value}" for path, value in changed.items()))


def _require_same(folder: Path, settings: dict[str, Any]) -> None:
    """Write the settings of a new sweep. Raises ConfigError for a folder begun with others, RunError without them."""
    file = folder / SETTINGS
    if not file.is_file():
        if (folder / JOURNAL).is_file():
            raise RunError(f"{folder} was begun by an earlier version, which kept no {SETTINGS}: give another --out")
        write_atomically(file, json.dumps(settings, indent=1) + "\n")
        return
    with naming_damage(file):
        before = json.loads(file.read_text(encoding="utf-8"))
    if changed := differences(before, settings):
        raise ConfigError(
            f"{folder} was begun with other settings ({'; '.join(changed)}): give the same, or another --out"
        )


def _finite(score: float) -> float | None:
    """Return a score as JSON can hold it. None: the training failed or diverged."""
    return score if math.isfinite(score) else None


def value_at(config: Any, path: str) -> Any:
    """Return the value of a dotted field. None: the field is missing, or its value is a bool."""
    for name in path.split("."):
        config = getattr(config, name, None)
    return None if isinstance(config, bool) else config
