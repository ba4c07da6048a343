"""Two ways to compute the same result, compared on a trained model and its own validation data.

`ways` compares computations of the model, `files` the contents of the run folder. A comparison has a largest
difference, its place, and a bound that rounding does not reach. A comparison that does not apply is left out with a
reason.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from regardant.checks.agreement.comparison import Compared, KeptCase
from regardant.checks.agreement.files import FILES
from regardant.checks.agreement.ways import WAYS
from regardant.checks.doctor.case import LeftOut

COMPARISONS: dict[str, Callable[[KeptCase], Compared]] = {**WAYS, **FILES}
"""Comparisons by name, in the order of reports."""


@dataclass(frozen=True)
class Agreement:
    """Results of the comparisons of a run."""

    compared: Mapping[str, Compared]
    left_out: Mapping[str, str]
    """Reasons for which comparisons do not apply, by name."""

    @property
    def failed(self) -> list[str]:
        """Names of comparisons whose difference exceeds the bound or is NaN."""
        return [name for name, one in self.compared.items() if not one.agrees]

    @property
    def agrees(self) -> bool:
        """True if something was compared and nothing failed."""
        return bool(self.compared) and not self.failed

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json, which has no NaN and no infinity: such a difference is None."""
        return {
            "failed": self.failed,
            "compared": [
                {
                    "name": name,
                    **asdict(one),
                    "difference": one.difference if math.isfinite(one.difference) else None,
                    "agrees": one.agrees,
                }
                for name, one in self.compared.items()
            ],
            "left_out": [{"name": name, "why": why} for name, why in self.left_out.items()],
        }

    def lines(self) -> list[str]:
        """Return a table for people, with a verdict as its last line."""
        width = max(len(name) for name in (*self.compared, *self.left_out, ""))
        lines = [
            f"{'agrees' if one.agrees else 'FAILED'}  {name:{width}}  {one.difference:8.2g} of at most "
            f"{one.bound:<7.2g} {one.unit}{', ' + one.where if one.where else ''}"
            for name, one in self.compared.items()
        ]
        lines += [f"-       {name:{width}}  left out: {why}" for name, why in self.left_out.items()]
        return [*lines, self._verdict()]

    def _verdict(self) -> str:
        count = len(self.compared)
        if not count:
            return "nothing was compared"
        return f"{len(self.failed)} of {count} FAILED" if self.failed else f"all {count} agree"


def compare_ways(case: KeptCase) -> Agreement:
    """Run all comparisons on a run."""
    compared, left_out = {}, {}
    for name, compare in COMPARISONS.items():
        try:
            compared[name] = compare(case)
        except LeftOut as reason:
            left_out[name] = str(reason)
    return Agreement(compared, left_out)
