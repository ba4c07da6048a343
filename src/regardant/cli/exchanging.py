"""Verbs that import and export models."""

from pathlib import Path
from typing import Annotated

import typer

from regardant.cli.lines import log, log_on_terminal, print_json
from regardant.cli.options import AsJson, RunFolder, app

FORMAT_HELP = "hf (transformers), ctranslate2 (translators only), onnx or torch (torch.export)."


@app.command("import")
def import_model(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A folder with config.json, model.safetensors and tokenizer.json."),
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder to make.")],
) -> None:
    """Make a run from a model saved by transformers. Reads BERT, RoBERTa, MiniLM, GPT-2, Llama, Marian, T5 and ViT;
    nothing in the folder is executed.

    Examples:
        regardant import bert-base-uncased --out runs/bert
    """
    from regardant.run.importing import import_model as make

    make(folder, out, log)


@app.command()
def export(
    run: RunFolder,
    to: Annotated[str, typer.Option("--to", "--format", metavar="FORMAT", help=FORMAT_HELP)],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to make.")],
    quantization: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help="Type of stored weights. ctranslate2: int8 (the default), int16, float16, bfloat16 or float32. onnx: "
            "float32 (the default) or int8. hf and torch: float32.",
        ),
    ] = None,
    data: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Compare on the texts of this file; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Export the model of a run, and compare the export with the run. hf: a folder for transformers. ctranslate2: a
    folder for ctranslate2.Translator. onnx: graphs for onnxruntime. torch: a program for torch.export.load. The folder
    has a sample.py that does not need regardant, and a README.md with the comparison: differences, size and speed. The
    exit code is 1 if a difference is beyond its bound.

    Examples:
        regardant export runs/masked --format hf --out masked-hf
        regardant export runs/demo --format onnx --out demo-onnx
    """
    log_on_terminal(f"exporting {run} to {out}")
    from regardant.run import load

    exported = load(run).export(to, out, quantization, data=data or ())
    if as_json:
        print_json(exported.as_dict())
    elif exported.parity is None:
        log(f"not compared: {exported.not_measured}")
    else:
        print("\n".join(exported.parity.table()))
    log(f"wrote {out}")
    if exported.failures:
        log(f"the export differs from its run: {'; '.join(exported.failures)}")
        raise typer.Exit(1)
