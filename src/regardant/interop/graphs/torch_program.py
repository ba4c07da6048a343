"""Export of a model that reads a text in one pass, as a program of torch.export: FOLDER/model.pt2."""

import warnings
from pathlib import Path

import torch

from regardant.errors import RunError, first_line
from regardant.interop.given import Given
from regardant.interop.graphs.modules import WholeInput, ids_of, traceable
from regardant.models.encoder_only import EncoderOnly


def write(given: Given, folder: Path) -> None:
    """Write the program. Raises RunError for a model that decodes in steps, and for one that no graph can express."""
    if not isinstance(given.model, EncoderOnly):
        raise RunError(f"torch programs need models that read a text at once, not {given.config.task}: use onnx")
    assert given.tokenizers is not None
    sizes = {"tokens": {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}}
    with traceable(given.model) as model, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about the exporter's internals
        module = WholeInput(model, ids_of(given.tokenizers.source)).eval()
        try:
            program = torch.export.export(module, (torch.full((2, 3), 5),), dynamic_shapes=sizes)
        except (RuntimeError, ValueError) as error:
            reason = first_line(error)
            raise RunError(f"torch cannot trace this model ({reason}): use --format hf or onnx") from error
        torch.export.save(program, folder / "model.pt2")
