"""Every command that help, README, docs and recipes show is one that the program accepts."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from regardant import cli, config
from regardant.cli.help import VERBS, examples
from regardant.config import run_files
from regardant.tasks import load_recipe

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = typer.main.get_command(cli.app)


def fenced(text: str) -> Iterator[str]:
    """Lines of blocks of code that are no Python, with continued lines joined."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if language not in ("python", "yaml", "json", "js"):
            yield from re.sub(r"\\\n\s*", " ", block).splitlines()


def inline(text: str) -> Iterator[str]:
    """Code within a line that calls the program with arguments."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from re.findall(r"`((?:\.venv/bin/)?regardant (?:--plugin \w+ )?[a-z]+ [^`]+)`", prose)


def calls(line: str) -> Iterator[list[str]]:
    """Arguments of each call of the program in a line of a shell."""
    line = re.sub(r"\$\(.*\)", "DIR", line.partition("`")[0])
    for part in re.split(r"&&|;| \|\|? ", line):
        words = shlex.split(re.sub(r" [<>] ?\S+| &$", "", part), comments=True)
        words = words[next((n for n, one in enumerate(words) if one.endswith("regardant")), len(words)) + 1 :]
        if words and "..." not in words:
            yield words


def shown() -> Iterator[tuple[str, list[str]]]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for line in [*fenced(text), *inline(text)]:
            if re.match(r"\s*(\$ )?(\.venv/bin/)?regardant ", line):
                yield from ((page.name, call) for call in calls(line))
    for name in config.recipes():
        for line in config.header(name).splitlines():
            if "regardant " in line:
                yield from ((name, call) for call in calls(line[line.index("regardant ") :]))
    for verb in VERBS:
        for line in examples(PROGRAM.commands[verb].help):
            yield from ((f"{verb} --help", call) for call in calls(line))


SHOWN = {f"{place}: {shlex.join(call)}": call for place, call in shown()}


def test_there_are_commands_to_check():
    assert len(SHOWN) > 100 and {"README.md", "using.md", "demo", "translate --help"} <= {
        name.partition(":")[0] for name in SHOWN
    }


@pytest.mark.parametrize("call", SHOWN.values(), ids=SHOWN.keys())
def test_the_program_accepts_every_command_that_is_shown(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_files, "run_file", lambda run: Path(run) / "run.yaml")
    for word in call:
        if word.endswith((".de", ".fr", ".txt")) and "/" not in word and "=" not in word:
            Path(word).touch()
    verb, *arguments = call[2:] if call[0] == "--plugin" else call
    assert verb in VERBS
    parsed = PROGRAM.commands[verb].make_context(verb, arguments).params
    recipe = parsed.get("recipe")
    if recipe in config.recipes() and call[0] != "--plugin":
        load_recipe(config.recipe(recipe), parsed["overrides"] or (), origin=recipe)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_has_an_example_and_no_marks_of_types(regardant, verb):
    text = regardant(verb, "--help").out
    shown = text.partition("Examples:\n")[2].splitlines()
    assert shown and all(line.startswith(f"  regardant {verb}") for line in shown)
    assert not re.search(r"<(path|str|list)|[{}]", text.partition("Examples:")[0])
    assert max(map(len, text.partition("Examples:")[0].splitlines())) <= 80


def test_help_lists_every_verb_in_a_group_with_a_whole_sentence(regardant):
    text = regardant("--help").out
    for verb in VERBS:
        (line,) = [line for line in text.splitlines() if line.startswith(f"  {verb} ")]
        assert line.endswith(".") and not line.endswith("...")
    assert text.index("\nTrain:\n") < text.index("\n  train ") < text.index("\nScore:\n")
    assert {command.name or command.callback.__name__ for command in cli.app.registered_commands} == set(VERBS)
