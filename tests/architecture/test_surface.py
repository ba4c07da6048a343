"""The public surface: the names of the package, the verbs, the recipes, and the commands in the texts."""

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import typer.main

import regardant
from regardant import cli, config
from regardant.tasks import load_recipe

ROOT = Path(__file__).parents[2]
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
VERBS = [
    "advise",
    "check",
    "compare",
    "demo",
    "doctor",
    "encode",
    "evaluate",
    "export",
    "generate",
    "import",
    "inspect",
    "lecture",
    "measure",
    "new",
    "plan",
    "predict",
    "recipes",
    "scale",
    "score",
    "serve",
    "studio",
    "tokens",
    "trace",
    "train",
    "translate",
    "try",
    "tune",
    "verify",
]
RECIPES = list(config.recipes())
BEFORE = r"(?:^|[;&|$]\s*|\s/)\s*"
"""Pattern of the text before a command in a line of shell."""


def verbs() -> list[str]:
    return sorted(command.name or command.callback.__name__ for command in cli.app.registered_commands)


def targets() -> set[str]:
    """Return the targets of the Makefile."""
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    return {match[1] for line in lines if (match := re.match(r"([\w-]+):(?!=)", line))}


def commands(markdown: str) -> Iterator[tuple[str, str]]:
    """Yield program and first argument of each `regardant` and `make` in the fenced code blocks of a text."""
    for block in re.findall(r"^```(?:\w*)\n(.*?)^```", markdown, flags=re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            yield from re.findall(rf"{BEFORE}(?:[\w./-]*/)?(regardant|make)\s+(?:--plugin\s+\w+\s+)?([\w-]+)", line)


def own_command(name: str) -> list[str]:
    """Return the arguments of the first `regardant` in a recipe's header."""
    found = re.search(r"\bregardant (.+?)(?: && |$)", config.header(name), flags=re.MULTILINE)
    assert found, f"the header of {name} names no command"
    return shlex.split(found[1])


def test_the_package_exports_these_names_and_no_others():
    assert sorted(regardant.__all__) == ["Run", "__version__", "load", "train"]
    assert all(callable(getattr(regardant, name)) for name in ("Run", "load", "train"))
    assert not hasattr(regardant, "predict")


def test_the_verbs_are_these_and_no_others():
    assert verbs() == VERBS


def test_every_verb_and_every_option_has_a_help():
    group = typer.main.get_command(cli.app)
    assert sorted(group.commands) == VERBS
    for verb, command in group.commands.items():
        assert command.help and command.help[0].isupper(), verb
        assert all(parameter.help for parameter in command.params), verb


def test_commands_are_found_in_fenced_blocks_only():
    text = "regardant serve\n```sh\nmake setup && make demo\n$ regardant train x | head; regardant plan x\n"
    text += ".venv/bin/regardant recipes  # regardant here is a word\ncd regardant demo\n"
    text += "regardant --plugin mine export x\n```\nmake nothing\n"
    assert list(commands(text)) == [
        ("make", "setup"),
        ("make", "demo"),
        ("regardant", "train"),
        ("regardant", "plan"),
        ("regardant", "recipes"),
        ("regardant", "export"),
    ]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_the_texts_exist(path):
    known = {("regardant", verb) for verb in VERBS} | {("make", target) for target in targets()}
    assert set(commands(path.read_text(encoding="utf-8"))) - known == set()


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_s_header_names_the_command_that_runs_it(name):
    verb, *arguments = own_command(name)
    assert (verb, *arguments[:1]) in {("train", name), (name,)}
    assert verb in VERBS
    assert len(config.header(name).splitlines()) >= 2, "a header says first what the recipe is"


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_valid_as_its_command_gives_it(name):
    document = config.recipe(name)
    arguments = own_command(name)
    overrides = [after for option, after in pairwise(arguments) if option == "--set"]
    loaded = load_recipe(document, overrides, origin=name)
    assert load_recipe(loaded.model_dump(mode="json", by_alias=True)) == loaded


def test_make_offers_what_the_project_promises():
    assert targets() >= {"setup", "demo", "test", "check", "bench"}
