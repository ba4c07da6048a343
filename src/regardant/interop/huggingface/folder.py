"""The files of a folder: plain values of JSON files, and tensors of safetensors files. Nothing in it is executed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from regardant.errors import DataError

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS_MAP = "special_tokens_map.json"
PREPROCESSOR = "preprocessor_config.json"
GENERATION = "generation_config.json"

PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")


def read_config(folder: Path) -> dict[str, Any]:
    """Return config.json, with rope_parameters merged into the other fields. Raises DataError if it is missing."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder: give a folder with {CONFIG}, {WEIGHTS} and {TOKENIZER}")
    if not (folder / CONFIG).is_file():
        raise DataError(f"{folder} has no {CONFIG}: give a folder written by save_pretrained")
    config = read_json(folder / CONFIG)
    return {**(config.get("rope_parameters") or {}), **config}


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty if there is no file. Raises DataError for other content."""
    content = _content(path, {})
    if not isinstance(content, dict):
        raise DataError(f"{path} holds no JSON object: restore it")
    return content


def read_json_list(path: Path) -> list[Any]:
    """Return the JSON list in a file; empty if there is no file. Raises DataError for other content."""
    content = _content(path, [])
    if not isinstance(content, list):
        raise DataError(f"{path} holds no JSON list: restore it")
    return content


def _content(path: Path, otherwise: Any) -> Any:
    if not path.is_file():
        return otherwise
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read ({error}): restore it") from error


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Return the tensors of a folder in float32, by name. Raises DataError if they are missing, damaged or pickled."""
    if (folder / INDEX).is_file():
        named: Mapping[str, str] = read_json(folder / INDEX).get("weight_map", {})
        files = sorted(set(named.values()))
        if outside := [name for name in files if Path(name).name != name]:
            raise DataError(f"{folder / INDEX} names {outside[0]}, which is not in the folder: restore it")
    elif (folder / WEIGHTS).is_file():
        files = [WEIGHTS]
    else:
        pickled = next((name for name in PICKLES if (folder / name).is_file()), None)
        found = "" if pickled is None else f", and {pickled} is not read, since it can hold code"
        raise DataError(f"{folder} has no {WEIGHTS}{found}: save the model with safe_serialization=True")
    tensors: dict[str, Tensor] = {}
    for name in files:
        try:
            with safe_open(folder / name, framework="pt") as file:
                tensors |= {key: file.get_tensor(key).to(torch.float32) for key in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise DataError(f"{folder / name} is not a complete safetensors file ({error}): restore it") from error
    return tensors
