"""How a peer answers its driver: a JSON object a line, in on stdin and out on stdout.

Runs in the environments of all peers, so it takes the standard library alone.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any


class Driver:
    """The process at the other end. Whatever else is printed from now on goes to stderr, the peer's log."""

    def __init__(self) -> None:
        self.answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def answer(self, **content: Any) -> None:
        print(json.dumps(content), file=self.answers, flush=True)

    def requests(self) -> Iterator[dict[str, Any]]:
        """Until the driver closes the line."""
        for line in sys.stdin:
            yield json.loads(line)


class Clock:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self.start, self.system = time.perf_counter(), os.times().system

    def read(self) -> dict[str, float]:
        """Seconds by the clock on the wall, and of the kernel, on all cores: page faults for the most part."""
        return {"seconds": time.perf_counter() - self.start, "system_seconds": os.times().system - self.system}
