"""Gradients of the loss by depth and by distance, on rows of a run's validation data, whatever its task.

RUN/measures/gradients.json    all digits
RUN/measures/gradients.txt     tables
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regardant.files import write_atomically
from regardant.inspection.gradients import gradient_norms
from regardant.models.base import Model
from regardant.pictures import Table, tables_in_notebook
from regardant.tasks.probe import Probe

LEGEND = [
    "By depth: norm of the gradient of the mean loss of a target with respect to all",
    "vectors after a layer. By distance: mean norm of the gradient of the loss of one",
    "target with respect to a vector that many positions before it. A source comes",
    "before its target: its last vector is 1 position before the first target.",
    "docs/measures.md has the formulas, the sources and how to read them.",
]


@dataclass(frozen=True)
class Gradients:
    """Norms of gradients of a trained model, in nats or the loss's own unit per unit of a vector."""

    rows: int
    """Rows of validation data."""
    depth: Mapping[str, float]
    """Norms by the name of an input or a layer, in the order of computation (`inspection.gradients.GradientNorms`)."""
    distance: Mapping[str, Sequence[float | None]]
    """Mean norms by the name of an input, at distance 0, 1, 2, ... positions. None where no vector has the distance."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    def tables(self) -> Iterator[Table]:
        """Yield tables for people. The last column is relative to the last layer, or to the least distance."""
        *_, last = self.depth.values()
        rows = [[name, f"{norm:.3g}", _relative(norm, last)] for name, norm in self.depth.items()]
        yield Table("Gradient of the loss by depth", ["vectors after", "norm", "relative\nto last"], rows)
        for name, norms in self.distance.items():
            means = [(label, _mean(norms[first:end])) for label, first, end in _ranges(len(norms))]
            known = [(label, mean) for label, mean in means if mean is not None]
            yield Table(
                f"Gradient of the loss of one target by distance, {name}",
                ["positions before", "norm", "relative\nto first"],
                [[label, f"{mean:.3g}", _relative(mean, known[0][1])] for label, mean in known],
            )

    def lines(self) -> list[str]:
        """Return title, tables and legend as lines."""
        lines = [f"gradients: {self.rows:,} rows of validation data"]
        for table in self.tables():
            lines += ["", *table.lines()]
        if not self.distance:
            lines += [
                "",
                "no distances: the items have no one-dimensional order, or the loss is computed over whole batches",
            ]
        return [*lines, "", *LEGEND]

    def save(self, folder: Path) -> None:
        """Write gradients.json and gradients.txt into a folder."""
        write_atomically(folder / "gradients.json", json.dumps(self.as_dict(), indent=1) + "\n")
        write_atomically(folder / "gradients.txt", "".join(f"{line}\n" for line in self.lines()))

    def _repr_html_(self) -> str:
        return tables_in_notebook(list(self.tables()), LEGEND)


def measure_gradients(model: Model, probe: Probe) -> Gradients:
    """Measure a model in evaluation mode on rows of its validation data."""
    found = gradient_norms(model, probe.inputs, probe.targets)
    distance = {name: [None if math.isnan(norm) else norm for norm in norms] for name, norms in found.distance.items()}
    return Gradients(len(probe.targets), found.depth, distance)


def _ranges(count: int) -> Iterator[tuple[str, int, int]]:
    """Yield ranges of distances from 0 to count - 1 whose sizes double: (label, first, end), end excluded."""
    yield "0", 0, 1
    first = 1
    while first < count:
        end = min(2 * first, count)
        yield (f"{first}" if end == first + 1 else f"{first}-{end - 1}"), first, end
        first = end


def _mean(norms: Sequence[float | None]) -> float | None:
    known = [norm for norm in norms if norm is not None]
    return sum(known) / len(known) if known else None


def _relative(norm: float, to: float) -> str:
    return f"{norm / to:.3g}" if to else "-"
