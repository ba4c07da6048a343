"""The lectures' numbers and statements, checked: what they claim, what is true, what this project measures.

The checks stand beside each other by subject; `check` says how one is written and how exactly it must agree.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from regardant.checks.verify import attention, cat, cost, counts, layers, positions, retrieval, scaling, shapes
from regardant.checks.verify.check import Check, Checked
from regardant.checks.verify.mechanisms import ours
from regardant.checks.verify.mine import MaskNotTaken, Mine
from regardant.checks.verify.statements import STATEMENTS

SUBJECTS = (attention, cat, cost, counts, layers, positions, retrieval, scaling, shapes)

NUMBERS = sorted(
    (value for subject in SUBJECTS for value in vars(subject).values() if isinstance(value, Check)),
    key=lambda check: check.claim.id,
)
"""Checks of numbers, in the order of their ids."""

CHECKS = [*NUMBERS, *STATEMENTS]
"""Every check, in the order of its id."""

ROUNDING = 2e-6
"""Largest error allowed to a learner's attention, whatever the digits say: it may compute in float32."""


@dataclass(frozen=True)
class Report:
    """Results of the checks."""

    checked: list[Checked]
    mine: str | None = None
    """The learner's function, if it was checked and not ours."""
    left_out: list[str] = field(default_factory=list)
    """Checks that need a mask, which the learner's function does not take."""

    @property
    def measured(self) -> list[Checked]:
        """Checks that measure something, and do not only name a source."""
        return [one for one in self.checked if not one.evidence]

    @property
    def failed(self) -> list[Checked]:
        """Checks whose measured value is not the true one."""
        return [one for one in self.checked if not one.ok]

    def verdicts(self) -> Counter[str]:
        """Count the claims of the lectures that are right, rounded, wrong ..."""
        return Counter(one.claim.verdict for one in self.checked)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json, with the errors of numbers of a learner's function that do not agree."""
        if self.mine is None:
            return {"checks": [one.as_dict() for one in self.checked]}
        off = [one.difference if math.isfinite(one.difference) else None for one in self.checked]
        return {"checks": [{**one.as_dict(), "difference": by} for one, by in zip(self.checked, off, strict=True)]}


def verify(mine: str | None = None) -> Report:
    """Run every check, or with `mine`, a `module:function`, those of attention on a learner's own.

    Raises ConfigError where that function cannot be called as (q, k, v).
    """
    if mine is None:
        return Report([check.run(ours) for check in CHECKS])
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
    return Report(checked, mine, left_out)
