"""Models of one recipe side by side, each from three seeds, with the simple models that its users would try first.

    make bench-families                          every recipe of benchmarks/families.yaml without a result: hours
    make bench-families BENCH="sst2 digits-vit"  these, with a result or without

A result belongs to the settings of its recipes and to its part of families.yaml: once they change, it no longer counts.
Results are written to benchmarks/results/families, docs/results.md and the headers of recipes, each when it is
measured. Since headers and pages are tracked files, commit before measuring more. Runs stay in runs/bench/families, and
those of the same commit are not trained again, so an interrupted measurement can be resumed. A result is marked as
`disturbed` if a training had to wait for other programs.
"""

import json
import shutil
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import Field, model_validator

from regardant.config import Config
from regardant.config import recipe as document_of
from regardant.planning.busy import BUSY
from regardant.run import load

from . import families_page, headers
from .bars import bar, conclude, lines
from .recipes import digest, json_of, planned_numbers, shown, training_numbers
from .records import REGARDANT, ROOT, Measurement, arguments, machine, set_options
from .watched import run_watched

RUNS = ROOT / "runs" / "bench" / "families"

MINUTES = "minutes"
"""Score with the mean wall time of a training in minutes, which bars may name."""

PACKAGE = "package:"
"""Prefix that tells the name of a package from the name of a recipe."""


class Model(Config):
    """A model of a family."""

    recipe: str | None = None
    """Recipe of the model, if it is not that of the family."""
    settings: tuple[str, ...] = ()
    """Overrides of the recipe."""
    start_from: str | None = None
    """Model that training starts from: a recipe, which is trained once for all seeds, or `package:` and the name of an
    installed package with a model of Hugging Face, which is imported."""


class Bar(Config):
    """Limit of the mean of a score over all seeds."""

    score: str
    at_least: float | None = None
    at_most: float | None = None
    model: str | None = None
    """Model that must meet the limit; the first one by default."""
    over: str | None = None
    """Model whose mean is subtracted, so that the limit is of the gain over it."""
    goal: bool = False

    @model_validator(mode="after")
    def _has_one_limit(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("a bar has one limit: at_least or at_most")
        return self

    def judged(self, models: Mapping[str, Any]) -> dict[str, Any]:
        """Return the bar as results hold it. `models` are the measured ones by name."""
        first = self.model or next(iter(models))
        value, name = mean_of(models[first]["runs"], self.score), f"{self.score} of {first}"
        if self.over:
            gain = value - mean_of(models[self.over]["runs"], self.score)
            value, name = round(gain, 9), f"{name} over {self.over}"  # without the error of the subtraction
        limit = self.at_most if self.at_least is None else self.at_least
        assert limit is not None
        return bar(name, value, limit, at_least=self.at_least is not None, goal=self.goal)


class Family(Config):
    """A recipe and what its model is compared with."""

    scores: tuple[str, ...] = Field(min_length=1)
    """Names of scores in `evaluate --json`, nested ones joined by points; models are compared by the first."""
    test: str
    """Description of the test data, for the page."""
    models: dict[str, Model] = Field(min_length=1)
    """Models by name; the first is the recipe's own."""
    bars: tuple[Bar, ...]
    seeds: int = 3
    """Number of seeds, which count from 1."""
    baselines: str | None = None
    """Name of a module of benchmarks.baselines."""
    attention: str | None = None
    """Name of a module of benchmarks whose measure(run) returns further scores of the first model."""
    published: str | None = None
    """Scores that papers report, for the page."""


def families() -> dict[str, Family]:
    """Return all families by the name of their recipe."""
    listed = yaml.safe_load((Path(__file__).parent / "families.yaml").read_text(encoding="utf-8"))
    return {name: Family.model_validate(fields) for name, fields in listed.items()}


def main(given: Sequence[str] | None = None) -> None:
    known = families()
    parser = arguments(__doc__)
    parser.add_argument(
        "recipes", nargs="*", choices=[*known, []], help="recipes of families.yaml; those without a result by default"
    )
    asked = parser.parse_args(given)
    measurement = Measurement(scratch=asked.scratch)
    bars = []
    for name in asked.recipes or unmeasured(known):
        result = measure(name, known[name], measurement.commit)
        print(*families_page.section(result), sep="\n")
        print(*lines(result["bars"]), sep="\n")
        measurement.keep(f"families/{name}", result)
        if not measurement.scratch:
            headers.write(result | {"machine": machine(), "commit": measurement.commit})
            for other in (model.recipe for model in known[name].models.values() if model.recipe):
                headers.refer(other, name)
            families_page.write()
        bars += result["bars"]
    conclude(bars)


def unmeasured(known: Mapping[str, Family]) -> list[str]:
    """Return the recipes without a result of their current settings."""
    results = families_page.kept()
    return [name for name, one in known.items() if results.get(name, {}).get("settings") != settings_of(name, one)]


def settings_of(name: str, family: Family) -> str:
    """Return a digest of all settings of a measurement: a family and its recipes, without their comments."""
    named = {name, *(one for model in family.models.values() for one in (model.recipe, model.start_from) if one)}
    named = {one for one in named if not one.startswith(PACKAGE)}
    set_of = [family.model_dump(), {one: document_of(one) for one in sorted(named)}]
    return digest(set_of)


def measure(recipe: str, family: Family, commit: str) -> dict[str, Any]:
    """Train all models of a family from all seeds, and return their scores beside those of the baselines."""
    baselines = import_module(f".baselines.{family.baselines}", __package__).measure() if family.baselines else {}
    folder = RUNS / recipe
    models = {}
    for number, (name, model) in enumerate(family.models.items()):
        command = [model.recipe or recipe, *set_options(model.settings)]
        if model.start_from:
            begin(model.start_from, folder / "first", commit)
            command += ["--set", f"training.from={folder / 'first'}"]
        runs = []
        for seed in range(1, family.seeds + 1):
            run = folder / f"{number}-{seed}"
            runs.append(kept_or_trained([*command, "--set", f"seed={seed}"], run, commit))
            if family.attention and number == 0:
                runs[-1]["scores"] |= import_module(f".{family.attention}", __package__).measure(load(run))
        models[name] = {**summary(runs, family.scores), "runs": runs}
    judged = [one.judged(models) for one in family.bars]
    return {
        "recipe": recipe,
        "settings": settings_of(recipe, family),
        "scores": family.scores,
        "test": family.test,
        "published": family.published,
        "models": models,
        "baselines": baselines,
        "bars": judged,
        **({"disturbed": True} if is_disturbed(models) else {}),
    }


def is_disturbed(models: Mapping[str, Any]) -> bool:
    """Return whether any training waited for a core as long as on a busy machine."""
    return any(run["waited_share"] >= BUSY for model in models.values() for run in model["runs"])


def begin(start_from: str, run: Path, commit: str) -> None:
    """Train or import the run that a model starts from."""
    if not start_from.startswith(PACKAGE):
        kept_or_trained([start_from], run, commit)
        return
    shutil.rmtree(run, ignore_errors=True)
    path = import_module(start_from.removeprefix(PACKAGE)).get_model_path()
    subprocess.run([REGARDANT, "import", path, "--out", str(run)], check=True)


def kept_or_trained(command: list[str], run: Path, commit: str) -> dict[str, Any]:
    """Return the numbers of a run: those kept by an interrupted measurement of this commit, or of a new training."""
    kept = run.with_suffix(".json")
    if kept.is_file() and run.is_dir() and not commit.endswith("-dirty"):
        found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        if found.pop("commit") == commit and found.pop("command") == command:
            return found
    shutil.rmtree(run, ignore_errors=True)
    numbers = trained(command, run)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({**numbers, "commit": commit, "command": command}), encoding="utf-8")
    return numbers


def trained(command: list[str], run: Path, options: Sequence[str] = ()) -> dict[str, Any]:
    """Train into a folder and evaluate, with options of `evaluate`; return the numbers that results hold."""
    train = ["train", *command, "--out", str(run)]
    seconds, waited = run_watched([REGARDANT, *train])
    scores = json_of(["evaluate", run, "--json", *options])
    numbers = training_numbers(run)
    return {
        "train": shown(train),
        "wall_seconds": round(seconds, 1),
        "waited_share": round(waited, 3),
        **{name: numbers[name] for name in ("training_seconds", "updates")},
        **planned_numbers(run),
        "scores": dict(flat(scores)),
    }


def flat(scores: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of nested objects, with names joined by points."""
    for name, value in scores.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        elif isinstance(value, int | float):
            yield f"{prefix}{name}", value


def mean_of(runs: Sequence[Mapping[str, Any]], score: str) -> float:
    """Return the mean of a score or of the minutes over all seeds, not rounded."""
    return statistics.mean(values_of(runs, score))


def values_of(runs: Sequence[Mapping[str, Any]], score: str) -> list[float]:
    """Return a score or the minutes of each run."""
    return [run["wall_seconds"] / 60 if score == MINUTES else run["scores"][score] for run in runs]


def summary(runs: Sequence[Mapping[str, Any]], scores: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return mean and standard deviation, over all seeds, of the scores and of the minutes."""
    if missing := set(scores) - set(runs[0]["scores"]):
        raise KeyError(f"`evaluate --json` has no {sorted(missing)[0]}: {', '.join(runs[0]['scores'])}")
    values = {name: values_of(runs, name) for name in (*runs[0]["scores"], MINUTES)}
    return {
        "mean": {name: round(statistics.mean(several), 4) for name, several in values.items()},
        "deviation": {
            name: round(statistics.stdev(several), 4) for name, several in values.items() if len(several) > 1
        },
    }


if __name__ == "__main__":
    main()
