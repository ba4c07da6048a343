"""The recipes of the package by name: `demo`, or `ladder/x` for one in a folder."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import takewhile
from typing import Any

from regardant.config.did_you_mean import did_you_mean
from regardant.config.documents import parse_mapping
from regardant.errors import ConfigError

FOLDER: Traversable = files("regardant") / "recipes"


def recipes() -> dict[str, Traversable]:
    """Return the files of all recipes by name, in alphabetical order."""
    return dict(sorted(_named(FOLDER, ""))) if FOLDER.is_dir() else {}


def recipe(name: str) -> dict[str, Any]:
    """Return the document of a recipe, as `load` takes it."""
    return parse_mapping(_text(name), name)


def header(name: str) -> str:
    """Return the comment at the top of a recipe: its purpose, command, cost and scores."""
    comment = takewhile(lambda line: line.startswith("#"), _text(name).splitlines())
    return "\n".join(line.removeprefix("#").removeprefix(" ") for line in comment)


def purpose(name: str) -> str:
    """Return the purpose of a recipe: its header up to the line of its command or its paper."""
    lines = takewhile(lambda line: not line.startswith(("command ", "paper ")), header(name).splitlines())
    return " ".join(lines)


def groups() -> dict[str, list[str]]:
    """Return the names of all recipes by task. The recipe named after the task comes first; it is for the user's data.

    Recipes of a folder form a group with the folder's name, after the tasks.
    """
    found: dict[tuple[bool, str], list[str]] = {}
    for name in recipes():
        folder, _, _ = name.rpartition("/")
        found.setdefault((bool(folder), folder or str(recipe(name).get("task", ""))), []).append(name)
    return {group: sorted(names, key=lambda name: name != group) for (_, group), names in sorted(found.items())}


def _named(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _named(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".yaml"):
            yield prefix + entry.name.removesuffix(".yaml"), entry


def _text(name: str) -> str:
    known = recipes()
    if name not in known:
        raise ConfigError(f"no recipe {name!r}{did_you_mean(name, known)} (there are: {', '.join(known)})")
    return known[name].read_text(encoding="utf-8")
