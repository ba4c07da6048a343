"""Verbs that train runs, estimate their cost and list recipes."""

import time
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

import typer

from regardant.cli.lines import log, log_on_terminal, print_json
from regardant.cli.options import AsJson, Overrides, Recipe, app, recipe_names
from regardant.cli.using import evaluate
from regardant.errors import ConfigError

if TYPE_CHECKING:
    from regardant.tasks.base import TaskConfig

PUBLISHED_NAMES = ("base", "big", "bert", "gpt3")
"""Published models that `plan` counts without a recipe."""

LINE = 120
"""Maximum length of a line of the list of recipes [characters]."""


@app.command()
def train(
    recipe: Recipe,
    overrides: Overrides = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="The run folder. [default: runs/RECIPE, or the folder of the run.yaml]"),
    ] = None,
) -> None:
    """Train a recipe into a run folder. Settings that are left open are chosen from the data and the machine, and
    printed with the expected time before training starts. Ctrl-C saves a checkpoint; the same command resumes.

    Examples:
        regardant train demo
        regardant train translation --set data.source=a.en --set data.target=a.de --out runs/mine
        regardant train runs/mine/run.yaml --set training.max_minutes=60
    """
    folder, config = out or _default_folder(recipe), configuration(recipe, overrides)
    _train(config, folder)
    use = f"{config.verbs[0]} {folder} 'Your text.'" if config.verbs else f"predict {folder} ITEM"
    log(f"use it:   regardant {use}")
    log(f"score it: regardant evaluate {folder}")


@app.command()
def plan(
    recipe: Recipe,
    overrides: Overrides = None,
    as_json: AsJson = False,
    shapes: Annotated[
        bool,
        typer.Option("--shapes", help="List every module with the shape of its output and its parameters instead."),
    ] = False,
    devices: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Estimate for N devices; nothing is measured."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="Kind of device: a100, h100 or h200. [default: h200]")
    ] = None,
    strategy: Annotated[str | None, typer.Option(metavar="NAME", help="ddp or fsdp. [default: both]")] = None,
    rate: Annotated[
        float | None, typer.Option(min=0, metavar="PRICE", help="Price of one device for an hour, in any currency.")
    ] = None,
) -> None:
    """Estimate the cost of a training. Prints parameters, memory, FLOPs and time, measured without an update; with
    --devices, estimates of memory, traffic, time and price on several accelerators; with --shapes, the modules of the
    model. No data is needed for the published models base, big, bert and gpt3, nor for --shapes of translation and
    language modelling.

    Examples:
        regardant plan gpt3
        regardant plan multi30k-en-de-raw
        regardant plan demo --set model.d_model=256 --json
        regardant plan demo --shapes
        regardant plan demo --set model.preset=base --devices 8 --device h200 --rate 3
    """
    from tempfile import TemporaryDirectory

    if recipe in PUBLISHED_NAMES:
        _require_alone(recipe, **{"--set": overrides, "--devices": devices})
    _require_devices(devices, **{"--device": device, "--strategy": strategy, "--rate": rate})
    if shapes:
        if devices is not None:
            raise ConfigError("--shapes lists the modules of one model, on any device: leave out --devices")
        _plan_shapes(recipe, overrides, as_json)
        return
    if recipe in PUBLISHED_NAMES:
        from regardant.planning.published import PUBLISHED

        cost = PUBLISHED[recipe].cost()
        print_json(cost.as_dict()) if as_json else print("\n".join(cost.lines()))
        return
    config = configuration(recipe, overrides)
    if devices is not None:
        _plan_scale(config, devices, device or "h200", strategy, rate, as_json)
        return
    from regardant import run

    with TemporaryDirectory(prefix="regardant-plan-") as folder:
        _, _, planned = run.plan(config, Path(folder), log)
    if as_json:
        print_json(planned.as_dict())
    else:
        print("\n".join(planned.lines()))


def _require_alone(published: str, **options: object) -> None:
    """Raise ConfigError for options of a recipe beside a published model."""
    if given := ", ".join(name for name, value in options.items() if value):
        raise ConfigError(f"{published} is a published model, not a recipe: leave out {given}, or give a recipe")


def _require_devices(devices: int | None, **options: str | float | None) -> None:
    """Raise ConfigError for options of --devices without it."""
    given = [name for name, value in options.items() if value is not None]
    if devices is None and given:
        raise ConfigError(f"{', '.join(given)} without --devices: give --devices N, or leave out {', '.join(given)}")


def _plan_shapes(recipe: str, overrides: list[str] | None, as_json: bool) -> None:
    if recipe in PUBLISHED_NAMES:
        from regardant.planning.shapes import shapes_of_published

        found = shapes_of_published(recipe)
    else:
        config = configuration(recipe, overrides)
        from regardant import run

        found = run.shapes(config, log)
    print_json(found.as_dict()) if as_json else print("\n".join(found.lines()))


def _plan_scale(
    config: "TaskConfig", devices: int, device: str, strategy: str | None, rate: float | None, as_json: bool
) -> None:
    from regardant.planning import scale

    costs = scale.costs(config, scale.device_named(device), devices, scale.ways_named(strategy), rate)
    if as_json:
        print_json({"strategies": [one.as_dict() for one in costs]})
        return
    print(f"parameters      {costs[0].parameters:,}")
    print("\n".join(line for one in costs for line in one.lines()))
    print("assumptions")
    print("\n".join(f"  {line}" for line in scale.assumptions(config, scale.device_named(device))))


@app.command()
def recipes(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="RECIPE",
            help="Recipe to print, with its command, cost and scores.",
            autocompletion=recipe_names,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List recipes by task, or print one. A recipe is a file of settings that comes with the package.

    Examples:
        regardant recipes
        regardant recipes demo
    """
    from regardant import config

    if name is not None:
        print_json({"recipe": name, "header": config.header(name)}) if as_json else print(config.header(name))
        return
    groups = config.groups()
    if as_json:
        print_json({group: {name: config.purpose(name) for name in names} for group, names in groups.items()})
        return
    width = 2 + max(len(name) for names in groups.values() for name in names)
    for group, names in groups.items():
        print(f"{group}:")
        for name in names:
            print(f"  {name:{width}}{shorten(config.purpose(name), LINE - width - 2, placeholder=' ...')}")
    print("\nregardant recipes RECIPE    prints its command, cost and scores")


@app.command()
def demo(out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder.")] = Path("runs/demo")) -> None:
    """Train a translator in two minutes and draw its attention. Trains English to French on the embedded grammar,
    without a download, evaluates the translator, translates two sentences and draws their attention.

    Examples:
        regardant demo
        regardant demo --out runs/first
    """
    start = time.perf_counter()
    _train(configuration("demo", None), out)
    trained_at = time.perf_counter()
    evaluate(out)
    scored_at = time.perf_counter()
    from regardant.run import load
    from regardant.tasks.translation.trained import TrainedTranslator

    translator = load(out).trained
    assert isinstance(translator, TrainedTranslator)
    picture = translator.show_lecture_sentences(log)
    print(f"trained in {trained_at - start:.0f} s, scored in {scored_at - trained_at:.0f} s")
    print(f"open {picture} in a browser to see the attention of each word")


def configuration(recipe: str, overrides: list[str] | None) -> "TaskConfig":
    from regardant import config

    if not _is_file(recipe):
        document = config.recipe(recipe)
    else:
        document = config.read_yaml(Path(recipe))
        if isinstance(document.get("asked"), dict):  # the run.yaml of an earlier run
            document = document["asked"]
    log_on_terminal(f"preparing {recipe}")
    from regardant.tasks import load_recipe  # the first to import torch

    return load_recipe(document, overrides or (), origin=recipe)


def _default_folder(recipe: str) -> Path:
    from regardant.config.run_files import RECORD

    path = Path(recipe)
    if path.name == RECORD:
        return path.parent
    return Path("runs") / (path.stem if _is_file(recipe) else recipe)


def _is_file(recipe: str) -> bool:
    return recipe.endswith((".yaml", ".yml"))


def _train(config: "TaskConfig", folder: Path) -> None:
    from regardant import run

    outcome = run.train(config, folder, log)
    if outcome is None:  # torchrun has started this process as another rank than 0
        raise typer.Exit
    cursor = outcome.cursor
    if not outcome.finished:
        log(f"stopped at update {cursor.update:,}, saved in {folder}; run the same command again to resume")
        raise typer.Exit(130)
    first, *others = outcome.summary()
    for line in (f"{folder}: {first}", *others):
        log(line)
