"""Files of sentence-transformers in the folder of an encoder.

modules.json               the modules in their order, the encoder first, each with its type and its folder
1_Pooling/config.json      how the vectors of tokens become one
sentence_bert_config.json  how the encoder reads a text: maximum length, lower case
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers as hf
from tokenizers import normalizers

from regardant.errors import DataError
from regardant.interop.huggingface.folder import CONFIG, TOKENIZER_CONFIG, read_json, read_json_list

MODULES = "modules.json"

READING = ("sentence_bert_config.json", "sentence_roberta_config.json")
"""Names of the file of the encoder's settings, the newer first."""

POOLING = "Pooling"

IMPORTED = (POOLING, "Normalize")
"""Types of modules after the encoder that can be imported."""

MODE, MODE_BEFORE = "pooling_mode", "pooling_mode_"
"""Name of the field of the pooling mode since version 5.4, and prefix of the boolean fields before."""

MEANS = ("mean", ["mean"])
"""Values of MODE for the mean of all tokens."""

SWITCH_OF_MEAN = "pooling_mode_mean_tokens"


def require_mean_pooling(folder: Path) -> None:
    """Raise DataError unless the vector of a text is the mean of its tokens' vectors, as it is in a run.

    A folder without modules.json holds a bare encoder, whose vectors sentence-transformers averages too.
    """
    for module in read_json_list(folder / MODULES)[1:]:
        kind, own = module["type"].rpartition(".")[2], Path(module["path"]).name
        if kind not in IMPORTED:
            raise DataError(
                f"{MODULES}: {own} is a module {kind}, and only sentence encoders that end in {' and '.join(IMPORTED)} "
                "can be imported"
            )
        if kind == POOLING:
            for name, value in _other_modes(read_json(folder / own / CONFIG)).items():
                raise DataError(
                    f"{own}/{CONFIG}: {name} is {value!r}, and only sentence encoders that take the mean of all tokens "
                    "can be imported"
                )


def max_length(folder: Path, positions: int) -> int:
    """Return the maximum number of tokens of a text, for an encoder of `positions` positions.

    sentence-transformers cuts a text to max_seq_length tokens or, without this field, to the tokenizer's limit.
    """
    limits = (_reading(folder).get("max_seq_length"), read_json(folder / TOKENIZER_CONFIG).get("model_max_length"))
    given = next((one for one in limits if one is not None), positions)
    return min(positions, int(given))


def put_lower_case(folder: Path, backend: hf.Tokenizer) -> None:
    """Let the tokenizer of a folder read texts in lower case if the encoder's settings say so."""
    if _reading(folder).get("do_lower_case"):
        own = [] if backend.normalizer is None else [backend.normalizer]
        backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])


def _reading(folder: Path) -> dict[str, Any]:
    """Return the settings of the encoder. Empty: the folder has none."""
    return next((read_json(folder / name) for name in READING if (folder / name).is_file()), {})


def _other_modes(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a pooling that ask for anything but the mean of all tokens."""
    if (mode := config.get(MODE)) is not None:
        return {} if mode in MEANS else {MODE: mode}
    return {
        name: value
        for name, value in config.items()
        if name.startswith(MODE_BEFORE) and value and name != SWITCH_OF_MEAN
    }
