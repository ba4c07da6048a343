"""Export of a run to the format of another program, with a sample program and a table that compares export and run.

FOLDER/settings.json    ids, labels and settings of the search, for the sample
FOLDER/sample.py        tokenises, runs and detokenises without this program
FOLDER/README.md        model card: the model, its use, and the table
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from regardant.config.did_you_mean import did_you_mean
from regardant.config.run_files import WEIGHTS
from regardant.data.vocabulary import NEVER_WRITTEN
from regardant.errors import ConfigError, RunError
from regardant.interop.folders import FORMATS, replacing, require_empty
from regardant.interop.given import Given, given_by
from regardant.interop.parity import BOUNDS, Parity, compare
from regardant.interop.settings import SETTINGS, settings_of, tokenizer_files
from regardant.models import SequenceToSequenceModel
from regardant.tasks.base import Trained

if TYPE_CHECKING:
    from regardant.run.opened import Run

NEEDS = {
    "hf": "torch transformers",
    "ctranslate2": "ctranslate2 numpy tokenizers",
    "onnx": "numpy onnxruntime tokenizers",
    "torch": "numpy torch tokenizers",
}
"""Packages that the sample of each format needs."""


@dataclass(frozen=True)
class Exported:
    """Comparison of an export with its run, or the reason why there is none."""

    parity: Parity | None
    """None: there was no sample, no test set, or a package of the sample is not installed."""
    not_measured: str
    """Reason why `parity` is None. Empty if it is not."""
    failures: tuple[str, ...]
    """Differences that exceed their bounds."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        parity = None if self.parity is None else self.parity.as_dict()
        return {"parity": parity, "not_measured": self.not_measured, "failures": list(self.failures)}


def export_run(
    run: "Run", to: str, folder: Path, quantization: str | None = None, data: Sequence[Path] = ()
) -> Exported:
    """Export a run to a new folder, and compare the export with the run on its test set, or on the files `data`.

    Raises:
        ConfigError: there is no such format or quantization.
        RunError: the folder is not empty or cannot be replaced, or the format cannot express the model.
    """
    if to not in FORMATS:
        near = did_you_mean(to, FORMATS) or f": take {', '.join(FORMATS)}"
        raise ConfigError(f"there is no format {to}{near}")
    stored = quantization or FORMATS[to][0]
    if stored not in FORMATS[to]:
        raise ConfigError(f"{to} has no quantization {stored}: take {', '.join(FORMATS[to])}")
    require_empty(folder)
    trained, given = run.trained, given_by(run.folder, run.trained.model, run.config)
    with replacing(folder) as part:
        sample = _write(to, given, part, stored)
        if sample is not None:
            text = files("regardant.interop").joinpath("samples", f"{sample}.py").read_text("utf-8")
            (part / "sample.py").write_text(text, encoding="utf-8")
        exported = _compared(trained, run.folder, part, data, stored, sample)
        (part / "README.md").write_text(readme(run, to, stored, exported, sample is not None), encoding="utf-8")
    return exported


def _write(to: str, given: Given, folder: Path, stored: str) -> str | None:
    """Write the model; return the name of its sample. None: items of this kind have no sample."""
    more: Mapping[str, Any] = {}
    names = ("tokenizer.json", "target_tokenizer.json")
    if to == "hf":
        from regardant.interop.huggingface.writing import export as write_hf

        write_hf(given, folder)
        if given.tokenizers is None:
            return None
        _keep(folder, settings_of(given), {})
        return "hf"
    settings = settings_of(given)
    if to == "ctranslate2":
        from regardant.interop.ctranslate2.export import export as write_ctranslate2  # an extra

        if not isinstance(given.model, SequenceToSequenceModel) or given.tokenizers is None:
            raise RunError(f"ctranslate2 takes translators only, and this is a run of {given.config.task}: use onnx")
        write_ctranslate2(given.model, given.tokenizers, folder, stored)
        more = {"never": [given.tokenizers.target.pieces[token] for token in NEVER_WRITTEN]}
        names, sample = ("source_tokenizer.json", "target_tokenizer.json"), "ctranslate2_translator"
    elif to == "onnx":
        from regardant.interop.graphs.onnx import write as write_onnx  # an extra

        more = write_onnx(given, folder, stored)
        sample = {"translation": "onnx_translator", "language_modelling": "onnx_writer"}.get(
            given.config.task, "reader"
        )
    else:
        from regardant.interop.graphs.torch_program import write as write_program

        write_program(given, folder)
        sample = "reader"
    _keep(folder, {**settings, **more}, tokenizer_files(given, names))
    return sample


def _keep(folder: Path, settings: Mapping[str, Any], texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / SETTINGS).write_text(json.dumps(settings, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _compared(
    trained: Trained, run: Path, folder: Path, data: Sequence[Path], stored: str, sample: str | None
) -> Exported:
    if sample is None:
        return Exported(None, "an export for these items has no sample program to compare with the run", ())
    exchange = trained.exchange(data)
    if exchange is None:
        return Exported(None, "this run has no test texts: give some with --data", ())
    try:
        weights = run / WEIGHTS
        parity = compare(exchange.test, exchange, weights, folder, torch.get_num_threads())
    except ModuleNotFoundError as error:
        return Exported(None, f"the sample needs {error.name}: install it to compare the export", ())
    bounds = BOUNDS["float32" if stored == "float32" else "narrow"]
    return Exported(parity, "", tuple(parity.failures(bounds)))


def readme(run: "Run", to: str, stored: str, exported: Exported, has_sample: bool) -> str:
    """Return the model card of an export."""
    config: Any = run.config
    parameters = sum(one.numel() for one in run.trained.model.parameters())
    lines = [
        f"# {run.folder.resolve().name}",
        "",
        f"A model of {config.task.replace('_', ' ')}, exported by Regardant to {to} with weights in {stored}.",
        "",
        "| | |",
        "|---|---|",
        f"| task | {config.task} |",
        f"| model | {config.model.kind}, {parameters:,} parameters |",
        f"| data | {_data(config)} |",
        f"| training | seed {config.seed}, {run.record.decided.precision} |",
        "",
        "Before you pass the model on, add the licence of its data and what it must not be used for.",
    ]
    if has_sample:
        lines += ["", "## Use", "", "```", f"pip install {NEEDS[to]}", "python sample.py < lines.txt", "```"]
    lines += ["", "## Compared with the run", ""]
    if exported.parity is None:
        lines.append(f"Not measured: {exported.not_measured}.")
    else:
        lines += exported.parity.table()
        lines += [f"\nBeyond its bound: {failure}." for failure in exported.failures]
    return "\n".join(lines) + "\n"


def _data(config: Any) -> str:
    """Return the names of the files that a run was trained on, or the kind of its data."""
    source = getattr(config.data, "source", None)
    names = [source] if isinstance(source, str) else list(source or ())
    return ", ".join(Path(name).name for name in names) or str(getattr(config.data, "kind", "not known"))
