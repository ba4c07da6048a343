"""Verbs that measure attention and gradients, trace activations and list tokens."""

from pathlib import Path
from typing import Annotated

import typer

from regardant.cli.lines import as_text, log, log_on_terminal, print_json, read_arguments
from regardant.cli.options import AsJson, RunFolder, app, writable_file
from regardant.errors import ConfigError

PAIRS_HELP = """Pairs to measure on instead of the run's validation set, without gold alignments. As for `evaluate`: a
file of sentences and one of their translations, or a table. For a language model: a text."""


@app.command()
def measure(
    run: RunFolder,
    data: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=PAIRS_HELP)] = None,
    treebank: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Sentences of the source language with their dependency trees (.conllu, also .gz), to measure which "
            "heads follow which relations.",
        ),
    ] = None,
    gradients: Annotated[
        bool,
        typer.Option(
            "--gradients",
            help="Measure gradients instead of heads: whether the gradient of the loss fades with the depth of a layer "
            "or with the distance to a target. Works for recurrent models too.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure what each attention head does. Prints where a head attends, how much it matters, and whether it explains
    the answer, aligns words or follows grammar, on the first pairs of the validation set or the first windows of a
    language model's text. Results are kept in RUN/measures.

    Examples:
        regardant measure runs/demo
        regardant measure runs/mine --treebank dev.conllu --json
        regardant measure runs/mine --gradients
    """
    if gradients and (data or treebank):
        raise ConfigError("--gradients reads the run's own validation data alone: leave out --data and --treebank")
    log_on_terminal(f"measuring {run}")
    from regardant.run import load

    loaded = load(run)
    found = loaded.gradients() if gradients else loaded.measure(data=data or (), treebank=treebank)
    if as_json:
        print_json(found.as_dict())
    else:
        print("\n".join(found.lines()))
    log(f"kept in {run / 'measures'}")


@app.command()
def trace(
    run: RunFolder,
    clean: Annotated[str, typer.Argument(metavar="CLEAN", help="A text. The answer is its likeliest next token.")],
    corrupted: Annotated[
        str,
        typer.Argument(metavar="CORRUPTED", help="A text of the same number of tokens, with another answer."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", callback=writable_file, help="Draw a heat map: .svg, .png or .pdf; .json: numbers."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Trace which vectors of a language model carry an answer. Activation patching replaces the vector at each layer
    and position of the corrupted text by that of the clean text; the table shows the share of the answer that is
    restored.

    Examples:
        regardant trace runs/shakespeare "ROMEO:" "JULIE:" --out trace.svg
    """
    log_on_terminal(f"tracing {run}")
    from regardant.run import load
    from regardant.tasks.language_modelling.tracing import require_format

    if out is not None:
        require_format(out)
    found = load(run).trace(*read_arguments((clean, corrupted)))
    if as_json:
        print_json(found.as_dict())
    else:
        print("\n".join(found.lines()))
    if out is not None:
        found.save(out)
        log(f"kept in {out}")


@app.command()
def tokens(
    run: RunFolder,
    item: Annotated[str, typer.Argument(metavar="ITEM", help="A text, or the path of an image or a recording.")],
    neighbours: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Print the N nearest tokens of each token, by the cosine of their vectors."
        ),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """List the elements of an item, as the model reads them. They are pieces of a text or of code, k-mers of DNA,
    patches of an image or frames of a recording.

    Examples:
        regardant tokens runs/demo "The cat sat." --neighbours 5
    """
    from regardant.run import load
    from regardant.run.tokens import elements

    loaded = load(run)
    # A file may have any bytes as its name.
    found = elements(loaded, run, item if loaded.config.suffixes else as_text(item), neighbours)
    if as_json:
        print_json({name: vars(one) for name, one in found.items()})
    else:
        print("\n".join(line for name, one in found.items() for line in one.lines(name)))
