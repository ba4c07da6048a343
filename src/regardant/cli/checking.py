"""Verbs that check claims, models and runs."""

from pathlib import Path
from typing import Annotated

import typer

from regardant.cli.lines import log_on_terminal, print_json
from regardant.cli.options import AsJson, RunFolder, app, writable_file
from regardant.files import write_atomically

MINE_HELP = """Check your own scaled dot-product attention: a function of tensors q [n, d], k [m, d] and v [m, e] that
returns [n, e]. It may take mask= [n, m], True where a query may attend to a key."""


@app.command()
def verify(
    mine: Annotated[str | None, typer.Option(metavar="MODULE:FUNCTION", help=MINE_HELP)] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=writable_file,
            help="Write an offline HTML page with all digits, reasons and sources.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check published claims about attention. Prints the published, the true and the measured value for each claim of
    the lectures, and a verdict. The exit code is 1 if a check fails.

    Examples:
        regardant verify
        regardant verify --page claims.html
        regardant verify --mine my_module:attention
    """
    log_on_terminal("measuring the claims")
    from regardant.checks.verify import report
    from regardant.checks.verify import verify as run_checks

    found = run_checks(mine)
    if page is not None:
        write_atomically(page, report.page(found))
    if as_json:
        print_json(found.as_dict())
    else:
        print("\n".join(report.summary(found)))
    if found.failed:
        raise typer.Exit(1)


@app.command()
def check(run: RunFolder, as_json: AsJson = False) -> None:
    """Check that equivalent computations of a model agree. Compares them on the validation data of the run: with a
    cache and without, alone and in a batch, padded and unpadded, loaded again, exported, in bfloat16. Prints the
    largest difference of each comparison; the exit code is 1 if one exceeds its bound, or if nothing was compared.

    Examples:
        regardant check runs/demo
    """
    log_on_terminal(f"checking {run}")
    from regardant.run import load

    found = load(run).check()
    if as_json:
        print_json(found.as_dict())
    else:
        print("\n".join(found.lines()))
    if not found.agrees:
        raise typer.Exit(1)


@app.command()
def doctor(
    run: RunFolder,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=writable_file, help="Write an offline HTML page too, with the curves."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Diagnose a run. Examines gradients, losses, masks, positions, attention, padding and memory, and prints each
    finding with its evidence and a cure. The exit code is 0 whatever is found; scripts read --json.

    Examples:
        regardant doctor runs/mine
        regardant doctor runs/mine --page diagnosis.html
    """
    log_on_terminal(f"examining {run}")
    from regardant.checks.doctor import report
    from regardant.run import load

    found = load(run).doctor()
    if page is not None:
        write_atomically(page, report.page(found, str(run)))
    if as_json:
        print_json(found.as_dict())
    else:
        print("\n".join(report.summary(found)))
