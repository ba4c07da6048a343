"""Load of the machine by other programs, measured as the time that this one waits for a core."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

SCHEDULED = Path("/proc/self/schedstat")
"""File in which Linux keeps the nanoseconds that the main thread ran and waited."""

BUSY = 0.3
"""Share of waiting from which measured speed is unreliable: an idle machine has under 0.02."""


class Reading(NamedTuple):
    """Times of the main thread in nanoseconds, since it began."""

    ran: int
    waited: int


def read_scheduled() -> Reading | None:
    """Return the times of the main thread, or None if the system does not keep them."""
    try:
        ran, waited, _ = map(int, SCHEDULED.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return None
    return Reading(ran, waited)


@dataclass(frozen=True)
class Waiting:
    """Time spent waiting for a core since this object was created."""

    begun: Reading | None = field(default_factory=read_scheduled)

    def share(self) -> float:
        """Return the share of runnable time spent waiting for a core. 0 if the system does not keep it."""
        now = read_scheduled()
        if self.begun is None or now is None:
            return 0.0
        ran, waited = now.ran - self.begun.ran, now.waited - self.begun.waited
        return waited / (ran + waited) if ran + waited > 0 else 0.0

    def note(self, *, in_minutes: bool) -> str | None:
        """Return a warning if the machine is busy. `in_minutes`: True if the planned updates depend on speed."""
        if (share := self.share()) < BUSY:
            return None
        busy = f"this machine is busy: measuring waited for a core {share:.0%} of the time, so"
        if in_minutes:
            return f"{busy} too few updates are planned; wait until other programs end, or set training.max_updates"
        return f"{busy} the expected time is too long"
