"""Verbs that make runs."""

from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

import typer

from regardant.cli.lines import print_json, say
from regardant.cli.options import AsJson, Overrides, Recipe, app, recipe_names
from regardant.cli.using import evaluate

if TYPE_CHECKING:
    from regardant.tasks.base import TaskConfig

PUBLISHED_NAMES = ("base", "big", "bert", "gpt3")
"""Models that `plan` counts without a recipe."""

LINE = 120
"""Characters of a line of the list of recipes."""


@app.command()
def train(
    recipe: Recipe,
    overrides: Overrides = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="The run folder. If not given runs/RECIPE, or where the run.yaml is."),
    ] = None,
) -> None:
    """Train into a run folder. The same command goes on where it was interrupted."""
    folder, config = out or _default_folder(recipe), configuration(recipe, overrides)
    _train(config, folder)
    use = f"{config.verbs[0]} {folder} 'Your text.'" if config.verbs else f"predict {folder} ITEM"
    say(f"use it:   regardant {use}")
    say(f"score it: regardant evaluate {folder}")


@app.command()
def plan(recipe: Recipe, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Say what training will cost. Parameters, memory, FLOPs and time, measured without an update. The published models
    base, big, bert and gpt3 are counted without data. Example: regardant plan gpt3"""
    from tempfile import TemporaryDirectory

    if recipe in PUBLISHED_NAMES and not overrides:
        from regardant.planning.published import PUBLISHED

        cost = PUBLISHED[recipe].cost()
        print_json(cost.as_dict()) if as_json else print("\n".join(cost.lines()))
        return
    config = configuration(recipe, overrides)
    from regardant import run

    with TemporaryDirectory(prefix="regardant-plan-") as folder:
        _, _, planned = run.plan(config, Path(folder), say)
    if as_json:
        print_json(planned.as_dict())
    else:
        print("\n".join(planned.lines()))


@app.command()
def recipes(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[RECIPE]", help="Print all that its header says.", autocompletion=recipe_names),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the recipes that come with the package, by task."""
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
    """Show it all on the embedded corpus. Trains, evaluates, translates two sentences and draws where it looks."""
    _train(configuration("demo", None), out)
    evaluate(out)
    from regardant.run import load
    from regardant.tasks.translation.trained import TrainedTranslator

    trained = load(out).trained
    assert isinstance(trained, TrainedTranslator)
    picture = trained.show_lecture_sentences(say)
    print(f"open {picture} in a browser to see where each word comes from")


def configuration(recipe: str, overrides: list[str] | None) -> "TaskConfig":
    from regardant import config

    if not _is_file(recipe):
        document = config.recipe(recipe)
    else:
        document = config.read_yaml(Path(recipe))
        if isinstance(document.get("asked"), dict):  # the run.yaml of an earlier run
            document = document["asked"]
    from regardant.tasks import load_recipe  # the first to import torch

    return load_recipe(document, overrides or (), origin=recipe)


def _default_folder(recipe: str) -> Path:
    path = Path(recipe)
    if path.name == "run.yaml":
        return path.parent
    return Path("runs") / (path.stem if _is_file(recipe) else recipe)


def _is_file(recipe: str) -> bool:
    return recipe.endswith((".yaml", ".yml"))


def _train(config: "TaskConfig", folder: Path) -> None:
    from regardant import run

    outcome = run.train(config, folder, say)
    cursor = outcome.cursor
    if not outcome.finished:
        say(f"stopped at update {cursor.update:,}, saved in {folder}; the same command goes on from there")
        raise typer.Exit(130)
    share = cursor.validation_seconds / cursor.seconds if cursor.seconds else 0.0
    say(
        f"{folder}: {cursor.update:,} updates in {cursor.seconds / 60:.1f} minutes ({share:.0%} of it validation), "
        f"best {outcome.metric.name} {outcome.best:.4g} at update {cursor.best_update:,}"
    )
