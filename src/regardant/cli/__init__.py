"""The command line: parses, calls `regardant.run`, prints. Torch is imported only when a verb needs it.

Results go to stdout, all else to stderr. Text is UTF-8 in any locale, and only a line feed ends a line. Exit codes:
0 done, 1 a check failed or the reader of stdout has left, 2 an error that the user can fix, 130 interrupted.
"""

import io
import sys
from typing import Annotated

import typer

from regardant import __version__
from regardant.cli import (  # noqa: F401  # each adds its verbs
    answering,
    bulk,
    checking,
    exchanging,
    extending,
    measuring,
    serving,
    sweeping,
    training,
    using,
)
from regardant.cli.help import VERBS, Verb
from regardant.cli.lines import give_up_stdout, log, open_closed_streams
from regardant.cli.options import app
from regardant.errors import RegardantError

for _command in app.registered_commands:
    _command.cls = Verb

app.registered_commands.sort(key=lambda command: VERBS.index(command.name or getattr(command.callback, "__name__", "")))


@app.callback(invoke_without_command=True)
def program(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    plugins: Annotated[
        list[str] | None,
        typer.Option("--plugin", metavar="MODULE", help="Import a Python module as a plugin; may be repeated."),
    ] = None,
) -> None:
    """Train, inspect and ship attention models on your own data."""
    if version:
        print(f"regardant {__version__}")
        raise typer.Exit
    if plugins:
        from regardant.config.plugins import import_plugins

        import_plugins(plugins)


def main() -> None:
    """Run the program. Errors that the user can fix are printed to stderr, with exit code 2."""
    open_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.writable():
        # Bytes of a file name that are not UTF-8 are printed as escapes.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except RegardantError as error:
        log(f"regardant: {error}")
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        from regardant.training.devices import ran_out_of_memory

        if not ran_out_of_memory(error):
            raise
        log("regardant: memory ran out: use a smaller beam, batch or model; saved files are kept")
        sys.exit(2)
    except BrokenPipeError:  # `regardant recipes | head -1`
        give_up_stdout()
        sys.exit(1)
    except OSError as error:  # a full disk, a folder that may not be written
        if not sys.stdout.writable():
            log("regardant: stdout is closed: redirect it to a file, or to /dev/null")
            sys.exit(2)
        give_up_stdout()
        log(f"regardant: the system reported: {error}; fix this and run the same command again")
        sys.exit(2)
