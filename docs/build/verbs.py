"""A page with the help of every verb."""

from collections.abc import Iterator

import typer.main
from typer.testing import CliRunner

from regardant import cli

WIDTH = "100"
"""Columns of a help text."""


def page() -> str:
    """Return the text of the page."""
    return "\n\n".join(_parts()) + "\n"


def _parts() -> Iterator[str]:
    yield "# Verbs"
    yield "What `regardant --help` and `regardant VERB --help` print."
    yield _help([])
    for verb in sorted(typer.main.get_command(cli.app).commands):
        yield f"## {verb}"
        yield _help([verb])


def _help(arguments: list[str]) -> str:
    environment = {"COLUMNS": WIDTH, "TERMINAL_WIDTH": WIDTH, "NO_COLOR": "1", "TERM": "dumb"}
    shown = CliRunner().invoke(cli.app, [*arguments, "--help"], env=environment, prog_name="regardant")
    if shown.exit_code:
        raise RuntimeError(f"regardant {' '.join(arguments)} --help ended with status {shown.exit_code}")
    return f"```text\n{shown.output.strip()}\n```"
