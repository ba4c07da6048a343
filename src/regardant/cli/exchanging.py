"""Verbs between this program and others."""

from pathlib import Path
from typing import Annotated

import typer

from regardant.cli.lines import say, say_on_terminal
from regardant.cli.options import RunFolder, app

FORMAT_HELP = "hf, a folder for transformers; or ctranslate2, of a translator."


@app.command("import")
def import_model(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A folder with config.json, model.safetensors and tokenizer.json."),
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder to make.")],
) -> None:
    """Make a run from a model that transformers has saved. BERT, RoBERTa, MiniLM, GPT-2, Llama, Marian, T5 and ViT;
    nothing in the folder is executed.

    Examples:
        regardant import bert-base-uncased --out runs/bert
    """
    from regardant.run.importing import import_model as make

    make(folder, out, say)


@app.command()
def export(
    run: RunFolder,
    to: Annotated[str, typer.Option("--to", "--format", metavar="FORMAT", help=FORMAT_HELP)],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to make.")],
    quantization: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help="How ctranslate2 stores weights: int8 (the default), int16, float16, bfloat16 or float32.",
        ),
    ] = None,
) -> None:
    """Write the model of a run for another program. hf: a folder that transformers opens, with weights in float32.
    ctranslate2: a folder that ctranslate2.Translator opens, with the tokenizer beside the model.

    Examples:
        regardant export runs/masked --format hf --out masked-hf
        regardant export runs/demo --format ctranslate2 --out demo-ct2
    """
    from regardant.errors import ConfigError

    if to == "hf" and quantization is not None:
        raise ConfigError("--quantization is of ctranslate2, and hf has weights in float32: leave it out")
    say_on_terminal(f"exporting {run} to {out}")
    from regardant.run import load

    load(run).export(to, out, quantization or "int8")
    say(f"wrote {out}")
