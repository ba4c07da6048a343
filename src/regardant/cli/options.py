"""The Typer application, and the options that several verbs share."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regardant.cli.help import Program
from regardant.cli.lines import log
from regardant.errors import ConfigError

if TYPE_CHECKING:
    from regardant.run import Run

PENALTY_HELP = "Rank by log-probability / length ** ALPHA; length in tokens, EOS counted; 0 ranks by the sum alone."
ENGINE_HELP = """Engine that translates: auto (one that is faster than torch and translates the run's validation text as
well, compared once), torch, torch-bfloat16 (faster on CPUs with bfloat16, less exact), or ctranslate2 (int8 weights;
ctranslate2-float32 and others name another type), to which the model is exported once."""


def _existing_run(run: Path) -> Path:
    """Return the folder. Raises RunError, before anything slow is imported, if it is no run."""
    from regardant.config.run_files import run_file

    return run_file(run).parent


def writable_file(option: typer.CallbackParam, file: Path | None) -> Path | None:
    """Return the file of an option that writes one. Raises ConfigError, before anything is computed, if it cannot be
    written. An empty name is the current folder."""
    if file is None:
        return None
    given = f"{option.opts[0]} {file}"
    if os.path.isdir(file):
        raise ConfigError(f"{given} is a folder: give the name of a file")
    if os.path.exists(file) and not os.path.isfile(file):  # a device or a pipe, which is not replaced
        return file
    folder = Path(os.path.realpath(file)).parent
    while not os.path.exists(folder):  # missing folders are made
        folder = folder.parent
    if not os.path.isdir(folder):
        raise ConfigError(f"{given} cannot be written: {folder} is no folder; give another name")
    if not os.access(folder, os.W_OK):
        raise ConfigError(f"{given} cannot be written: no file may be made in {folder}; give another name")
    return file


def engine_of(run: "Run", engine: str) -> str | None:
    """Return the engine, None for `auto` on a run that does not translate. Prints the engine that `auto` chooses."""
    if "translate" not in run.config.verbs:
        return None if engine == "auto" else engine
    if engine == "auto":
        log(str(run.translation.choose_engine(log)))
    return engine


app = typer.Typer(
    cls=Program,
    help="Train, inspect and ship attention models on your own data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def recipe_names(begun: str) -> list[str]:
    """Return the names of recipes that begin with a prefix, for completion in a shell."""
    from regardant import config

    return [name for name in config.recipes() if name.startswith(begun)]


Recipe = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE",
        help="A recipe's name (see `regardant recipes`), a .yaml file or a run.yaml.",
        autocompletion=recipe_names,
    ),
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="A.B=C", help="Set a field of the recipe; may be repeated.")
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", callback=_existing_run)]
Input = Annotated[
    Path | None,
    typer.Option("--input", metavar="FILE", help="Read the items from FILE (plain, .gz or .zst), one a line."),
]
Output = Annotated[
    Path | None,
    typer.Option(metavar="FILE", callback=writable_file, help="Write to FILE instead of stdout, all at the end."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
BeamSize = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Hypotheses kept at each step; 1 is greedy search.")
]
Penalty = Annotated[float | None, typer.Option(min=0, metavar="ALPHA", help=PENALTY_HELP)]
Engine = Annotated[str, typer.Option(metavar="NAME", help=ENGINE_HELP)]
