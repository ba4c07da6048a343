"""Trial of a user's attention mechanism: checks of its contracts, then the demo trained with and without it.

OUT/trial.json             settings of all runs, decided when the trial began
OUT/baseline/seed-1        the demo as it is
OUT/version-1/seed-1       the demo with the mechanism; a changed module is the next version
OUT/version-1/trial.html   the comparison
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from pydantic import ValidationError

from regardant import config as configuration
from regardant.attention import AttentionConfig
from regardant.checks.contracts import Contracts, check_contracts, maker
from regardant.config.plugins import import_plugins, plugin_module
from regardant.config.problems import explain
from regardant.errors import ConfigError
from regardant.files import write_atomically
from regardant.run.comparing import compare
from regardant.run.opened import load
from regardant.run.training import plan, train_in_turn
from regardant.studies.resumed import is_evaluated, naming_damage, require_minutes
from regardant.studies.trial_report import Arm, TrialReport
from regardant.tasks import load_recipe
from regardant.tasks.base import Log, TaskConfig

RECIPE = "demo"

PLACES = {
    "encoder.self_attention": frozenset({"keys"}),
    "decoder.self_attention": frozenset({"causal"}),
    "decoder.cross_attention": frozenset({"keys"}),
}
"""Places of a mechanism in the model, with the fields of a view that it must honour at each."""

AROUND_TRAINING = 20.0
"""Seconds of a run outside its training: reading the corpus, planning, evaluation. Measured on two cores."""


@dataclass(frozen=True)
class Settings:
    """Settings of all runs of a trial."""

    minutes: float
    """Minutes that the baseline was expected to train."""
    updates: int
    """Updates of each run."""
    precision: str
    kernel: str
    versions: list[str] = field(default_factory=list)
    """SHA-256 of the module, by version."""

    @classmethod
    def read(cls, file: Path) -> Self:
        """Return the settings in a trial.json. Raises RunError for a damaged one."""
        with naming_damage(file):
            return cls(**json.loads(file.read_text(encoding="utf-8")))

    def overrides(self) -> list[str]:
        """Return the settings as overrides of a recipe."""
        return [
            "training.max_minutes=null",
            f"training.max_updates={self.updates}",
            f"training.precision={self.precision}",
            f"training.attention_kernel={self.kernel}",
            "training.processes=1",
        ]


class Interrupted(Exception):
    """A run that was stopped by a signal, after it saved a checkpoint."""


@dataclass(frozen=True)
class Trial:
    """A mechanism and the folder of its runs."""

    file: Path
    kind: str
    settings: AttentionConfig
    folder: Path

    @classmethod
    def of(cls, file: Path, folder: Path | None) -> Self:
        """Return the trial of the mechanism that a module adds. Raises ConfigError for none, for several, and for one
        that needs more settings than its kind."""
        name = plugin_module(file)
        import_plugins([name])
        kinds = {kind: made for kind, made in AttentionConfig.kinds().items() if made.__module__ == name}
        if len(kinds) != 1:
            found = ", ".join(kinds) or "none"
            raise ConfigError(
                f"{file} adds {len(kinds)} kinds of attention ({found}): give a module with one subclass of "
                "AttentionConfig that has a kind, as `regardant new attention my_attention` writes"
            )
        ((kind, settings),) = kinds.items()
        try:
            defaults = settings.model_validate({"kind": kind})
        except ValidationError as error:
            problems = "; ".join(f"{problem.path}: {problem.text}" for problem in explain(error, settings))
            raise ConfigError(
                f"{file}: {settings.__name__} cannot be made with its defaults ({problems}): `try` sets no field, so "
                "give each a default that is allowed"
            ) from error
        return cls(file, kind, defaults, folder or Path("runs") / "try" / name)

    def contracts(self) -> Contracts:
        """Check the contracts of attention."""
        return check_contracts(maker(self.settings))

    def train(self, seeds: int, minutes: float, log: Log) -> tuple[TrialReport, Path]:
        """Train and evaluate the demo with the mechanism and without it from each seed. Return the comparison and its
        page.

        Evaluated runs are kept. Raises Interrupted if a signal stops a run.
        """
        settings, version = self._begin(minutes, log)
        new = [f"model.{place}.kind={self.kind}" for place in self.places()]
        log(f"{self.kind} in {', '.join(self.places())}; {settings.updates:,} updates a run, from {seeds} seeds each")
        arms = {"baseline": self.folder / "baseline", self.kind: self.folder / f"version-{version}"}
        total = seeds * len(arms)
        for seed in range(1, seeds + 1):
            for number, (name, folder) in enumerate(arms.items(), 2 * seed - 1):
                given = [*settings.overrides(), f"seed={seed}", *(new if name == self.kind else [])]
                if not is_evaluated(folder / f"seed-{seed}"):
                    log(f"run {number} of {total}: {name}, seed {seed}")
                    _train(_recipe(given), folder / f"seed-{seed}", log)
        folders = {name: [folder / f"seed-{seed}" for seed in range(1, seeds + 1)] for name, folder in arms.items()}
        pairs = zip(*folders.values(), strict=True)
        report = TrialReport(
            [Arm.read(name, runs) for name, runs in folders.items()], [compare(list(pair)) for pair in pairs]
        )
        page = arms[self.kind] / "trial.html"
        write_atomically(page, report.page())
        return report, page

    def places(self) -> list[str]:
        """Return the places of the model that the mechanism can take. Raises ConfigError if there is none."""
        honours = maker(self.settings)().honours
        if not (places := [place for place, needs in PLACES.items() if needs <= honours]):
            raise ConfigError(f"{self.kind} honours neither keys nor causal: no layer of a translator can use it")
        return places

    def _begin(self, minutes: float, log: Log) -> tuple[Settings, int]:
        """Return the settings of all runs, measured if the trial is new, and the number of the module's version."""
        file, digest = self.folder / "trial.json", hashlib.sha256(self.file.read_bytes()).hexdigest()
        if file.is_file():
            settings = Settings.read(file)
            require_minutes(self.folder, settings.minutes, minutes)
        else:
            log("measuring the baseline")
            settings = _measured(minutes)
        if digest not in settings.versions:
            settings.versions.append(digest)
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(file, json.dumps(asdict(settings), indent=1) + "\n")
        return settings, settings.versions.index(digest) + 1


def expected_minutes(seeds: int, minutes: float) -> float:
    """Return the minutes that a trial takes, if the mechanism is as fast as the baseline."""
    return 2 * seeds * (minutes + AROUND_TRAINING / 60)


def _measured(minutes: float) -> Settings:
    with TemporaryDirectory(prefix="regardant-try-") as folder:
        asked = _recipe([f"training.max_minutes={minutes}", "training.processes=1"])
        _, decisions, planned = plan(asked, Path(folder), lambda line: None)
    return Settings(minutes, planned.updates, decisions.precision, decisions.kernel)


def _recipe(overrides: Sequence[str]) -> TaskConfig:
    return load_recipe(configuration.recipe(RECIPE), overrides, origin=RECIPE)


def _train(config: TaskConfig, run: Path, log: Log) -> None:
    outcome = train_in_turn(config, run, lambda line: None)
    if not outcome.finished:
        raise Interrupted
    log("evaluating")
    load(run).evaluate()
