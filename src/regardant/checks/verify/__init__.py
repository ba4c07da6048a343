"""Checks of the lectures' numbers and statements: the claim, the true value, and this project's measurement.

Modules hold the checks by subject; `check` defines the form of a check and the precision of its values.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from regardant.checks.verify import (
    attention,
    cost,
    counts,
    layers,
    positions,
    retrieval,
    scaling,
    shapes,
    worked_example,
)
from regardant.checks.verify.check import Check, Checked
from regardant.checks.verify.mechanisms import ours
from regardant.checks.verify.mine import MaskNotTaken, Mine
from regardant.checks.verify.statements import STATEMENTS

SUBJECTS = (attention, cost, counts, layers, positions, retrieval, scaling, shapes, worked_example)

NUMBERS = sorted(
    (value for subject in SUBJECTS for value in vars(subject).values() if isinstance(value, Check)),
    key=lambda check: check.claim.id,
)
"""Checks of numbers, in the order of their ids."""

CHECKS = [*NUMBERS, *STATEMENTS]
"""Checks of numbers and statements, in the order of their ids."""

ROUNDING = 2e-6
"""Minimum tolerance for a learner's attention, whatever the digits say: it may compute in float32."""


@dataclass(frozen=True)
class VerificationReport:
    """Results of the checks."""

    checked: list[Checked]
    mine: str | None = None
    """Name of the learner's function that was checked. None: this project's attention was."""
    left_out: list[str] = field(default_factory=list)
    """Ids of checks that need a mask, which the learner's function does not take."""

    @property
    def measured(self) -> list[Checked]:
        """Checks with a measurement, not only a source."""
        return [one for one in self.checked if not one.evidence]

    @property
    def failed(self) -> list[Checked]:
        """Checks whose measured value is not the true one."""
        return [one for one in self.checked if not one.ok]

    def verdicts(self) -> Counter[str]:
        """Return the number of claims of each verdict."""
        return Counter(one.claim.verdict for one in self.checked)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json, with `Checked.difference` if a learner's function was checked."""
        if self.mine is None:
            return {"checks": [one.as_dict() for one in self.checked]}
        off = [one.difference if math.isfinite(one.difference) else None for one in self.checked]
        return {"checks": [{**one.as_dict(), "difference": by} for one, by in zip(self.checked, off, strict=True)]}


def verify(mine: str | None = None) -> VerificationReport:
    """Run every check, or with `mine`, a learner's `module:function`, the checks of attention on that function.

    Raises ConfigError if the function cannot be called as (q, k, v).
    """
    if mine is None:
        return VerificationReport([check.run(ours) for check in CHECKS])
    attend = Mine(mine)
    checked: list[Checked] = []
    left_out: list[str] = []
    for check in CHECKS:
        if not check.attends:
            continue
        try:
            checked.append(check.run(attend, ROUNDING))
        except MaskNotTaken:
            left_out.append(check.claim.id)
    return VerificationReport(checked, mine, left_out)
