"""The debugging checklist of a run: what is wrong, with the evidence and a cure.

Checks stand beside each other by what they look at; `case` says what they have before them. None raises its voice on a
healthy run: bounds are where no healthy training was seen to go. What does not apply is left out by name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regardant.checks.doctor.case import Case, Finding, LeftOut, Seen
from regardant.checks.doctor.curves import CURVES
from regardant.checks.doctor.entropy import ENTROPY
from regardant.checks.doctor.self_tests import SELF_TESTS
from regardant.checks.doctor.settings import SETTINGS

CHECKS = (*CURVES, *SELF_TESTS, *ENTROPY, *SETTINGS)
"""All of them, in the order in which they are told."""


@dataclass(frozen=True)
class Diagnosis:
    """What came out of the checks."""

    seen: Mapping[str, Seen]
    """By the name of the check."""
    left_out: Mapping[str, str]
    """Why, by the name of the check."""

    @property
    def findings(self) -> Sequence[tuple[str, Finding]]:
        """With the names of their checks."""
        return [(name, finding) for name, seen in self.seen.items() for finding in seen.findings]

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "findings": [{"name": name, **asdict(finding)} for name, finding in self.findings],
            "checked": [{"name": name, "measured": seen.measured} for name, seen in self.seen.items()],
            "left_out": [{"name": name, "why": why} for name, why in self.left_out.items()],
        }


def examine(case: Case) -> Diagnosis:
    """Go through the list."""
    seen, left_out = {}, {}
    for check in CHECKS:
        try:
            seen[check.name] = check.look(case)
        except LeftOut as reason:
            left_out[check.name] = str(reason)
    return Diagnosis(seen, left_out)
