"""Verbs that evaluate, compare, inspect and show runs."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regardant.cli.lines import log, log_on_terminal, print_json, read_arguments
from regardant.cli.options import AsJson, BeamSize, Engine, Penalty, RunFolder, app, engine_of, writable_file

if TYPE_CHECKING:
    from regardant.tasks.inspection import Inspection

DATA_HELP = """Other text to test on. For a translator, given twice: a file of sentences and one of their translations,
a line each; given once: a .jsonl, .parquet, .csv or .tsv table with columns named source and target; a .csv or .tsv of
just two columns, source first, needs no header. For a language model: any text; each file is scored by itself."""


@app.command()
def evaluate(
    run: RunFolder,
    data: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=DATA_HELP)] = None,
    beam_size: BeamSize = None,
    length_penalty: Penalty = None,
    engine: Engine = "auto",
    as_json: AsJson = False,
) -> None:
    """Score a run on its test sets or on other text. Scores translations by BLEU, chrF and TER with their signatures; a
    language model by loss, perplexity and bits per character; other tasks by the metrics of their recipe. Scores are
    kept in RUN/evaluation. Options default to the settings of the recipe. A named --engine is compared with torch.

    Examples:
        regardant evaluate runs/demo
        regardant evaluate runs/mine --data test.en --data test.de --json
    """
    log_on_terminal(f"scoring {run}")
    from regardant.run import load

    loaded = load(run)
    options = {"beam_size": beam_size, "length_penalty": length_penalty}
    if not data:
        loaded.require_data()  # before engines are compared on it
    scores = loaded.evaluate(data=data or (), engine=engine_of(loaded, engine), **options)
    if as_json:  # the first set's scores, and beside them the other sets by name
        first, *others = scores
        print_json({**scores[first], **{name: scores[name] for name in others}})
        return
    for name, numbers in scores.items():
        print("\n".join(loaded.trained.summary(name, numbers)))
    print(f"kept in {run / 'evaluation'}")


@app.command()
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folders of evaluated runs; the others are compared with the first."),
    ],
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=writable_file, help="Write an offline HTML page, with curves and bars."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs on the test sets they share. Prints scores, also by length of the source, paired bootstrap tests
    against the first run, and the cost of each training. Evaluate the runs first.

    Examples:
        regardant compare runs/first runs/second
        regardant compare runs/first runs/second runs/third --page comparison.html
    """
    from regardant import run

    report = run.compare(runs, page)
    if as_json:
        print_json(report.as_dict())
    else:
        print("\n".join(report.lines()))
    if page is not None:
        log(f"open {page} in a browser to see the curves")


@app.command()
def inspect(
    run: RunFolder,
    text: Annotated[
        str,
        typer.Argument(
            metavar="ITEM",
            help="A text; a file, where items are not text; or a question with its context (see predict).",
        ),
    ],
    target: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For a translator: the translation. [default: its own]")
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            callback=writable_file,
            help=".html: an interactive page that needs no network; .svg, .png or .pdf: a picture; .json: the numbers.",
        ),
    ] = Path("attention.html"),
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Kind of attention, such as cross-attention. [default: all; with --layer, the last one]",
        ),
    ] = None,
    layer: Annotated[
        int | None, typer.Option(metavar="N", help="A layer; the first is 1. [default: all, side by side]")
    ] = None,
    head: Annotated[
        int | None,
        typer.Option(metavar="N", help="A head of the layer; the first is 1. [default: the mean of all]"),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(metavar="UNIT", help="Rows and columns: words or pieces. [default: words, where there are any]"),
    ] = None,
) -> None:
    """Draw the attention over one item. Draws every layer, head and kind of attention, or a chosen one, and prints the
    answer of the model: a translation, the likeliest next tokens, or a class. Layers and heads count from 1.

    Examples:
        regardant inspect runs/demo "The cat sees the dog."
        regardant inspect runs/demo "The cat sees the dog." --layer 2 --head 3 --out head.pdf
        regardant inspect runs/sst2 "a fine film" --out attention.svg
    """
    log_on_terminal(f"opening {run}")
    from regardant.tasks.inspection import require_format

    require_format(out)
    found = _inspected(run, text, target)
    found.save(out, kind, layer, head, unit)
    print(found.answer)
    log(f"kept in {out}")


def _inspected(run: Path, item: str, target: str | None) -> "Inspection":
    """Return the inspection of a command-line item, with the translation `target` if given."""
    from regardant.data.item_files import shown_name
    from regardant.run import load

    loaded = load(run)
    given = read_arguments([] if target is None else [target])
    if not loaded.config.suffixes:
        return loaded.inspect(next(read_arguments([item])), *given)
    found = loaded.inspect(item, *given)  # a file may have any bytes as its name, and a page only UTF-8
    return replace(found, item=shown_name(found.item), title=shown_name(found.title))


@app.command()
def studio(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN...", help="Run folders, or folders that hold runs. [default: runs]"),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port of this machine; 0: any free one.")
    ] = 8421,
) -> None:
    """Show runs in a browser. Shows curves while runs train, translations and their attention, each step of attention
    with its numbers, and a lab. Only this machine can reach it; Ctrl-C stops it.

    Examples:
        regardant studio
        regardant studio runs/demo runs/mine --port 9000
    """
    from regardant.studio.serve import serve

    serve(runs or [Path("runs")], port, log)
