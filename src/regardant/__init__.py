"""Regardant: train, inspect and ship attention models on your own data.

import regardant
run = regardant.load("runs/demo")
run.translate(["The cat sat on the mat."], beam_size=5)[0].text
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regardant.run import Run as Run
    from regardant.run import load as load
    from regardant.run import train as train

__version__ = "0.1.0"

__all__ = ["Run", "__version__", "load", "train"]


def __getattr__(name: str) -> Any:
    if name in ("Run", "load", "train"):  # on first use, so that `import regardant` does not import torch
        from regardant import run

        return getattr(run, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
