"""Modules of sentence-transformers that follow the encoder in a folder.

modules.json           the modules in their order, the encoder first, each with its type and its folder
1_Pooling/config.json  how the vectors of tokens become one
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regardant.errors import DataError
from regardant.interop.huggingface.folder import CONFIG, read_json, read_json_list

MODULES = "modules.json"

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


def _other_modes(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a pooling that ask for anything but the mean of all tokens."""
    if (mode := config.get(MODE)) is not None:
        return {} if mode in MEANS else {MODE: mode}
    return {
        name: value
        for name, value in config.items()
        if name.startswith(MODE_BEFORE) and value and name != SWITCH_OF_MEAN
    }
