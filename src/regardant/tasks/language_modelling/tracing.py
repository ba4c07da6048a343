"""Activation patching of a language model as tables and pictures: the vectors that carry its answer."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regardant.errors import ConfigError
from regardant.files import write_atomically
from regardant.inspection import Patching
from regardant.pictures import Drawing, Matrix, Table, matrix_svg, pdf, png, require_pdf, tables_in_notebook

FORMATS = (".svg", ".png", ".pdf", ".json")
"""File formats of a saved trace."""

LEGEND = [
    "Share of the difference of the answer's log-probability that is restored by one",
    "vector of the clean text, at a position and after a number of layers. 1: all of",
    "it, 0: nothing. docs/inspection.md has the formula and the sources.",
]


@dataclass(frozen=True, eq=False)
class Trace:
    """Shares of the answer that single vectors of the clean text restore."""

    clean: Sequence[str]
    """Tokens [T] of the clean text."""
    corrupted: Sequence[str]
    """Tokens [T] of the corrupted text."""
    answer: str
    """Token that is likeliest after the clean text."""
    patching: Patching

    @property
    def positions(self) -> list[str]:
        """Names of the positions: the token, or both where the texts differ."""
        pairs = zip(self.clean, self.corrupted, strict=True)
        return [clean if clean == corrupted else f"{corrupted} > {clean}" for clean, corrupted in pairs]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON. `restored` are shares by number of layers and by position."""
        return {
            "clean": list(self.clean),
            "corrupted": list(self.corrupted),
            "answer": self.answer,
            "log_probability": {"clean": self.patching.clean, "corrupted": self.patching.corrupted},
            "restored": self.patching.restored.tolist(),
        }

    def tables(self) -> Iterator[Table]:
        """Yield the table for people."""
        layers = range(len(self.patching.restored))
        rows = [
            [name, *(f"{share:.2f}" for share in shares)]
            for name, shares in zip(self.positions, self.patching.restored.T.tolist(), strict=True)
        ]
        yield Table(f"{self.caption}, by number of layers", ["corrupted > clean", *map(str, layers)], rows)

    @property
    def caption(self) -> str:
        """Name of the picture."""
        return f"Share of {self.answer!r} that each vector restores"

    def lines(self) -> list[str]:
        """Return the log-probabilities, the table and its legend."""
        log = f"log-probability of {self.answer!r}: {self.patching.clean:.3f} nats after the clean text, "
        (table,) = self.tables()
        return [f"{log}{self.patching.corrupted:.3f} after the corrupted one", "", *table.lines(), "", *LEGEND]

    def svg(self) -> Drawing:
        """Return a heat map: rows are positions, columns numbers of layers."""
        layers = len(self.patching.restored) - 1
        return matrix_svg(
            Matrix(
                title="Activation patching",
                caption=self.caption,
                rows=self.positions,
                columns=["input", *(f"layer {number}" for number in range(1, layers + 1))],
                numbers=np.asarray(self.patching.restored.T),
                relation="after",
                scale="is restored",
            )
        )

    def save(self, path: Path) -> None:
        """Save the trace in the format of the file's suffix: .svg, .png, .pdf or .json. Raises ConfigError."""
        require_format(path)
        if path.suffix == ".json":
            write_atomically(path, json.dumps(self.as_dict(), ensure_ascii=False) + "\n")
        elif path.suffix == ".pdf":
            write_atomically(path, pdf(self.svg(), title=self.caption))
        else:
            write_atomically(path, png(self.svg()) if path.suffix == ".png" else self.svg())

    def _repr_html_(self) -> str:
        return tables_in_notebook(list(self.tables()), LEGEND)


def require_format(path: Path) -> None:
    """Raise ConfigError for a file in whose format a trace cannot be saved."""
    if path.suffix not in FORMATS:
        raise ConfigError(f"{path} is none of {', '.join(FORMATS)}: give the file a name that ends in one of them")
    if path.suffix == ".pdf":
        require_pdf()
