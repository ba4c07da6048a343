"""Programs that are watched: their memory, and other work on the machine, which makes wall time an upper limit."""

import re
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

POLL_SECONDS = 1.0
"""Seconds between two checks of a command."""


def run_watched(command: Sequence[str | Path]) -> tuple[float, float]:
    """Run a command to its end. Return its wall time in seconds and the share of time that it waited for a core.

    The share is that of its main thread, of the time in which this could have run: under 0.02 on an idle machine, and 0
    where the system does not keep it. Raises CalledProcessError if the command fails.
    """
    start, share = time.perf_counter(), 0.0
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            share = waited_share(process.pid, share)
            with suppress(subprocess.TimeoutExpired):
                process.wait(POLL_SECONDS)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds, share


def waited_share(process: int, unknown: float = 0.0) -> float:
    """Return the share of time that the main thread of a process has waited for a core, `unknown` if it has ended."""
    try:
        ran, waited, _ = map(int, Path(f"/proc/{process}/schedstat").read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return unknown
    return waited / (ran + waited) if ran + waited else unknown


def memory_of(process: int | str = "self", field: str = "VmRSS") -> int | None:
    """Return the resident memory of a process in bytes, None if it has ended.

    field: VmHWM for its peak, RssAnon for anonymous pages alone, which only swap can free.
    """
    found = status_of(process, field)
    return None if found is None else 1024 * found


def status_of(process: int | str, field: str) -> int | None:
    """Return a number of /proc/PROCESS/status, None if the process has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = re.search(rf"^{field}:\s+(\d+)", status, flags=re.MULTILINE)
    return int(found[1]) if found else None
