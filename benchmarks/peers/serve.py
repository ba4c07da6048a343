"""Protocol between a peer and its driver: one JSON object a line, requests on stdin and answers on stdout.

This module runs in the environments of all peers, so it imports the standard library only.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any


class Driver:
    """The process at the other end. Once it is made, all other output of the peer goes to stderr, which is its log."""

    def __init__(self) -> None:
        self.answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def answer(self, **content: Any) -> None:
        print(json.dumps(content), file=self.answers, flush=True)

    def requests(self) -> Iterator[dict[str, Any]]:
        """Yield requests until the driver closes stdin."""
        for line in sys.stdin:
            yield json.loads(line)


class Clock:
    """Clock that starts when it is made."""

    def __init__(self) -> None:
        self.start, self.system = time.perf_counter(), os.times().system

    def read(self) -> dict[str, float]:
        """Return the wall time in seconds, and the seconds of all cores in the kernel: mostly page faults."""
        return {"seconds": time.perf_counter() - self.start, "system_seconds": os.times().system - self.system}
