"""Export of a model as ONNX graphs, for onnxruntime and other programs.

FOLDER/encoder.onnx, decoder.onnx    a translator
FOLDER/model.onnx                    a language model with its cache, or a model that reads a text in one pass

Shape legend: as in `modules`.
"""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regardant.errors import ConfigError, RunError, first_line
from regardant.interop.given import Given
from regardant.interop.graphs.modules import (
    Continuation,
    TranslatorDecoder,
    TranslatorEncoder,
    WholeInput,
    ids_of,
    traceable,
)
from regardant.models import EncoderDecoder
from regardant.models.decoder_only import DecoderOnly

try:
    import onnxscript  # noqa: F401  # torch.onnx needs it: its absence is reported below
    from onnxruntime.quantization import QuantType, quantize_dynamic
except ModuleNotFoundError as error:
    raise ConfigError("onnxruntime and onnxscript are not installed: pip install 'regardant[onnx]'") from error

NEW, BEFORE = 2, 3
"""Numbers of new tokens, and of tokens before them, in the example that a graph is traced with. Both are dynamic."""

OPEN = torch.export.Dim.DYNAMIC
"""Marker of a dynamic dimension."""


def write(given: Given, folder: Path, quantization: str) -> dict[str, Any]:
    """Write the graphs of a run, with weights in float32 or int8, and return the settings that their sample needs.

    Raises RunError for a model that a graph cannot express.
    """
    assert given.tokenizers is not None
    with traceable(given.model) as model:
        source, target = (ids_of(one) for one in (given.tokenizers.source, given.tokenizers.target))
        if isinstance(model, EncoderDecoder):
            settings = _write_translator(model, source, target, folder)
        elif isinstance(model, DecoderOnly):
            settings = _write_language_model(model, target, folder)
        else:
            module, example, sizes = (
                WholeInput(model, source),
                {"tokens": torch.full((2, BEFORE), 5)},
                {0: OPEN, 1: OPEN},
            )
            _trace(module, example, {"tokens": sizes}, ["scores"], folder / "model.onnx")
            settings = {}
    if quantization == "int8":
        for path in folder.glob("*.onnx"):
            _quantise(path)
    return settings


def _write_translator(model: EncoderDecoder, source: Any, target: Any, folder: Path) -> dict[str, Any]:
    sources = torch.full((2, BEFORE), 5)
    encoder = TranslatorEncoder(model, source)
    memory = encoder(sources)
    names = ["memory_keys", "memory_values", "real"]
    _trace(encoder, {"tokens": sources}, {"tokens": {0: OPEN, 1: OPEN}}, names, folder / "encoder.onnx")
    given, sizes, cache = _decoding(model.decoder)
    given |= dict(zip(names, memory, strict=True))
    sizes |= {"memory_keys": {1: OPEN, 3: OPEN}, "memory_values": {1: OPEN, 3: OPEN}, "real": {0: OPEN, 1: OPEN}}
    _trace(
        TranslatorDecoder(model, target), given, sizes, ["scores", "all_keys", "all_values"], folder / "decoder.onnx"
    )
    return {"cache": cache}


def _write_language_model(model: DecoderOnly, ids: Any, folder: Path) -> dict[str, Any]:
    given, sizes, cache = _decoding(model.decoder)
    _trace(Continuation(model, ids), given, sizes, ["scores", "all_keys", "all_values"], folder / "model.onnx")
    return {"cache": cache}


def _decoding(decoder: Any) -> tuple[dict[str, Any], dict[str, Any], list[list[int]]]:
    """Return example tokens, keys and values, their dynamic dimensions, and (L, G, D) and (L, G, E)."""
    shape = decoder.layers[0].self_attention.shape
    cache = [[len(decoder.layers), shape.num_key_heads, size] for size in (shape.key_size, shape.value_size)]
    keys, values = (torch.zeros(layers, 2, heads, BEFORE, size) for layers, heads, size in cache)
    given = {"tokens": torch.full((2, NEW), 5), "keys": keys, "values": values}
    sizes = {"tokens": {0: OPEN, 1: OPEN}, "keys": {1: OPEN, 3: OPEN}, "values": {1: OPEN, 3: OPEN}}
    return given, sizes, cache


def _trace(module: nn.Module, given: dict[str, Any], sizes: dict[str, Any], outputs: Sequence[str], path: Path) -> None:
    """Write the graph of a module. Raises RunError for one that torch cannot trace."""
    try:
        with _quiet():
            program = torch.onnx.export(
                module.eval(), kwargs=given, dynamic_shapes=sizes, output_names=outputs, dynamo=True, verbose=False
            )
    except torch.onnx.errors.OnnxExporterError as error:
        reason = first_line(error.__cause__ or error)
        raise RunError(f"torch cannot trace this model ({reason}): use --format hf or ctranslate2") from error
    assert program is not None
    program.save(path)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the exporter's warnings, log lines and standard output, which are about its internals."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


def _quantise(path: Path) -> None:
    whole = path.with_suffix(".float32")
    path.rename(whole)
    with _quiet():
        quantize_dynamic(whole, path, weight_type=QuantType.QInt8)
    whole.unlink()
