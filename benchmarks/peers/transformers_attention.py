"""The attention of models of transformers, as the driver names it."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import nn

IMPLEMENTATIONS = {"sdpa": "sdpa", "matmul": "eager"}
"""transformers' name of each attention."""


def attend(model: nn.Module, attention: str) -> AbstractContextManager[Any]:
    """Let a model attend so from now on."""
    wanted = IMPLEMENTATIONS[attention]
    if model.config._attn_implementation != wanted:  # type: ignore[union-attr]
        model.set_attn_implementation(wanted)  # type: ignore[operator]
    return nullcontext()
