"""Verbs that train many runs."""

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from regardant.cli.lines import log, print_json
from regardant.cli.options import AsJson, Overrides, Recipe, app
from regardant.cli.training import configuration
from regardant.errors import ConfigError
from regardant.files import write_atomically

if TYPE_CHECKING:
    from regardant.tasks.base import TaskConfig

Minutes = Annotated[float, typer.Option(min=0, metavar="N", help="Minutes for all trainings together.")]
Out = Annotated[Path | None, typer.Option(metavar="FOLDER", help="The output folder. [default: runs/VERB/NAME]")]


@contextmanager
def _resumable() -> Iterator[None]:
    """Exit with status 130 if a training was interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        log("stopped; run the same command again to resume")
        raise typer.Exit(130) from None


@app.command()
def tune(
    recipe: Recipe,
    overrides: Overrides = None,
    minutes: Minutes = 20.0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Tune the settings of a recipe. Sweeps learning rate, warm-up, batch, dropout and, last, the number of layers;
    weak values stop early. The best settings and the recipe's own train once more with another seed. Run the same
    command again to resume.

    Examples:
        regardant tune reverse --minutes 20
        regardant tune classification --set data.source=reviews.csv --minutes 20
    """
    if importlib.util.find_spec("optuna") is None:
        raise ConfigError("tune needs optuna, which is not installed: pip install 'regardant[tune]'")
    from regardant.studies import tuning, tuning_page

    folder = out or Path("runs/tune") / Path(recipe).stem
    with _resumable():
        tuned = tuning.tune(_Loader(recipe, overrides), folder, minutes, log)
    write_atomically(folder / "tuning.html", tuning_page.page(tuned, recipe))
    print_json(tuned.as_dict()) if as_json else print("\n".join(tuning_page.lines(tuned)))
    log(f"open {folder / 'tuning.html'} in a browser")


@app.command()
def scale(
    recipe: Recipe,
    overrides: Overrides = None,
    by: Annotated[Literal["size", "data", "compute"], typer.Option(help="Quantity to vary.")] = "size",
    minutes: Minutes = 30.0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Fit a power law to the loss. Trains four sizes, amounts of data or lengths of training with three seeds each, and
    prints the exponent with its 95 % interval. Run the same command again to resume.

    Examples:
        regardant scale copy --by size
    """
    from regardant.studies import scaling

    folder = out or Path("runs/scale") / Path(recipe).stem
    with _resumable():
        found = scaling.scale(_Loader(recipe, overrides), folder, by, minutes, log)
    write_atomically(folder / f"scaling-{by}.html", found.page(recipe))
    print_json(found.as_dict()) if as_json else print("\n".join(found.lines()))
    log(f"open {folder / f'scaling-{by}.html'} in a browser")


class _Loader:
    """Loader of a recipe with the overrides of the command line, followed by further ones."""

    def __init__(self, recipe: str, overrides: list[str] | None) -> None:
        self.recipe, self.overrides = recipe, overrides or []

    def __call__(self, more: Sequence[str]) -> "TaskConfig":
        return configuration(self.recipe, [*self.overrides, *more])


@app.command()
def advise(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A table of labelled texts, a text, or a folder of images.")
    ],
    overrides: Overrides = None,
    minutes: Minutes = 4.0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Advise whether to use a Transformer for your data. Trains a Transformer and a simpler model on them, with two
    seeds each, and compares scores, speed and memory.

    Examples:
        regardant advise reviews.csv --minutes 8
    """
    from regardant.studies.advice import advise as ask

    with _resumable():
        found = ask(data, out or Path("runs/advise") / data.stem, minutes, overrides or (), log)
    print_json(found.as_dict()) if as_json else print("\n".join(found.lines()))


@app.command()
def lecture(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a lab. [default: list all labs]")] = "",
    minutes: Minutes = 8.0,
    out: Out = None,
) -> None:
    """Run a lab of the lectures from data to picture. Trains its models on the embedded grammar, compares them,
    translates sentences and draws their attention.

    Examples:
        regardant lecture
        regardant lecture bahdanau
    """
    from regardant.config.did_you_mean import did_you_mean
    from regardant.studies.lectures import LABS
    from regardant.studies.lectures import lecture as run_lab

    if not name:
        print("\n".join(f"{lab:14}{content.about}" for lab, content in LABS.items()))
        return
    if name not in LABS:
        raise ConfigError(f"there is no lab {name!r}; allowed: {', '.join(LABS)}{did_you_mean(name, LABS)}")
    with _resumable():
        print("\n".join(run_lab(name, out or Path("runs/lecture") / name, minutes, log)))
