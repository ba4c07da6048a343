"""The debugging checklist of a run: findings, each with its evidence and a cure.

`curves` reads metrics, `self_tests` runs the model, `entropy` reads attention, `settings` reads the configuration;
`case` holds the run that they check. Bounds are beyond all values seen in healthy training, so a healthy run has no
findings. A check that does not apply is listed as left out, with the reason.
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
"""Checks of the doctor, in the order of reports."""


@dataclass(frozen=True)
class Diagnosis:
    """Results of the checks of a run."""

    seen: Mapping[str, Seen]
    """Measurements and findings, by name of the check."""
    left_out: Mapping[str, str]
    """Reasons for which checks do not apply, by name of the check."""

    @property
    def findings(self) -> Sequence[tuple[str, Finding]]:
        """Findings with the names of their checks."""
        return [(name, finding) for name, seen in self.seen.items() for finding in seen.findings]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        return {
            "findings": [{"name": name, **asdict(finding)} for name, finding in self.findings],
            "checked": [{"name": name, "measured": seen.measured} for name, seen in self.seen.items()],
            "left_out": [{"name": name, "why": why} for name, why in self.left_out.items()],
        }


def examine(case: Case) -> Diagnosis:
    """Run all checks on a run."""
    seen, left_out = {}, {}
    for check in CHECKS:
        try:
            seen[check.name] = check.look(case)
        except LeftOut as reason:
            left_out[check.name] = str(reason)
    return Diagnosis(seen, left_out)
