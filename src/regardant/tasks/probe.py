"""A few rows of data as a model takes them, with names for people: what every tool runs a model on.

Shape legend: N rows, T elements of an input.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

PROBE_ELEMENTS, PROBE_ROWS = 1024, 32
"""Maximum size of a probe, except for the few rows that every probe holds."""


@dataclass(frozen=True)
class Probe:
    """Rows of data as a model takes them: N rows."""

    inputs: Mapping[str, Any]
    """The inputs of the model by name."""

    targets: Tensor
    """The answers that the head is asked for: [N], or [N, T] with the target that the head ignores as padding."""

    labels: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """Names of the elements of each row by input; padding has none."""

    def replaced(self, name: str, value: Any) -> dict[str, Any]:
        """Return the inputs with another one in the place of `name`."""
        return {**self.inputs, name: value}
