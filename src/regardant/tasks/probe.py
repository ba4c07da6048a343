"""A small labelled batch of a run's data, on which tools of inspection run a model.

Shape legend: N rows, T elements of an input.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

PROBE_ELEMENTS, PROBE_ROWS = 1024, 32
"""Maximum number of elements and of rows of a probe. It has 4 rows at least, however long they are."""


@dataclass(frozen=True)
class Probe:
    """A labelled batch of N rows."""

    inputs: Mapping[str, Any]
    """The inputs of the model by name."""

    targets: Tensor
    """Targets of the head: [N], or [N, T] padded with the target that the head ignores."""

    labels: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """Names of the elements of each row by input; padding has none."""

    def replaced(self, name: str, value: Any) -> dict[str, Any]:
        """Return the inputs with `value` as the input `name`."""
        return {**self.inputs, name: value}
