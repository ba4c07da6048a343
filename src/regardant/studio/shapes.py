"""The module tree of a model, with the input and output shapes of each module for one item."""

from dataclasses import asdict
from typing import Any

from regardant.inspection.shapes import trace_shapes
from regardant.studio.open_runs import Asked
from regardant.tasks.base import Trained


def traced(trained: Trained, asked: Asked) -> dict[str, Any]:
    """Return the tree, and the number of elements of each input."""
    found = trained.inspect(asked.text, **asked.options)
    return {
        "item": found.item,
        "answer": found.answer,
        "elements": {name: len(one.labels) for name, one in found.inputs.items()},
        "tree": asdict(trace_shapes(trained.model, found.batch)),
    }
