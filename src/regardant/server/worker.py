"""The worker thread that owns the model of a run, its queue, and dynamic batching.

A batch has the oldest call and those calls of its kind that are nearest to it in length, as far as their rows fit. It
is computed when it is full, or when its oldest call has waited for `max_wait_ms`. A model is not thread-safe, so every
computation for a request goes through the run's worker.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

import torch

from regardant.server.limits import RETRY_SECONDS, Limits, Refusal
from regardant.server.metrics import Metrics

Owned = TypeVar("Owned")
"""Type of the object that a worker owns: a run, or several runs that take turns."""

Compute = Callable[[Any, list[Any]], Sequence[Any]]
"""Function of the owned object and rows that returns a result for each row."""

JOIN_SECONDS = 5.0
"""Timeout in seconds for the last batch when the server ends. Its clients have left; all other calls were answered."""


def take_threads(count: int) -> None:
    """Let torch compute with `count` threads in the calling thread, which would begin with the number that another
    thread has set for itself, such as one in a search."""
    torch.get_num_threads()  # the first call takes that number, and would undo an earlier setting
    torch.set_num_threads(count)


@dataclass(eq=False)
class ModelCall:
    """Rows of a request that wait to be computed."""

    compute: Compute
    rows: list[Any]
    length: int = 0
    """Length of the longest row, in any unit: calls of similar length share a batch."""
    kind: Hashable | None = None
    """Key of calls that may share a batch. None: the call is computed alone, without waiting for others."""
    answer: Future[list[Any]] = field(default_factory=Future)
    """Future of the results of the rows. A call whose future is cancelled is not computed."""
    since: float = field(default_factory=time.monotonic)


class Worker(Generic[Owned]):
    """Owner of a run, or of several, with a queue and a thread."""

    def __init__(self, name: str, run: Owned, limits: Limits, metrics: Metrics) -> None:
        self.name, self.run, self.limits, self.metrics = name, run, limits, metrics
        self.calls: deque[ModelCall] = deque()
        self.changed = Condition()
        self.closed = False
        self.num_threads = torch.get_num_threads()
        self.thread = Thread(target=self._work, name=f"model of {name}", daemon=True)
        self.thread.start()

    @property
    def is_alive(self) -> bool:
        """True while calls are answered."""
        return self.thread.is_alive()

    @property
    def rows_waiting(self) -> int:
        """Number of rows in the queue."""
        with self.changed:
            return self._rows()

    def submit(self, call: ModelCall, *, is_begun: bool = False) -> Future[list[Any]]:
        """Add a call to the queue and return the future of its results.

        Raises Refusal if the queue is full, unless the call continues a request that was begun.
        """
        with self.changed:
            if not is_begun and self._is_full_for(call):
                raise Refusal(
                    f"{self._rows()} items are waiting for {self.name}, allowed are {self.limits.max_queue}: try "
                    f"again in {RETRY_SECONDS} s",
                    status=429,
                    retry_after=RETRY_SECONDS,
                )
            self.calls.append(call)
            self.changed.notify()
        return call.answer

    def close(self) -> None:
        """Answer the calls in the queue and end the thread. Leaves a batch that takes longer than JOIN_SECONDS."""
        with self.changed:
            self.closed = True
            self.changed.notify()
        self.thread.join(JOIN_SECONDS)

    def _work(self) -> None:
        take_threads(self.num_threads)
        while batch := self._take():
            begun = [call for call in batch if call.answer.set_running_or_notify_cancel()]
            self.metrics.dropped.labels(self.name).inc(len(batch) - len(begun))
            if begun:
                self._answer(begun)

    def _take(self) -> list[ModelCall]:
        """Return the next batch as soon as it is due. Empty when the worker is closed and the queue is empty."""
        with self.changed:
            while True:
                self._drop_cancelled()
                if self.calls:
                    batch, is_full = self._next_batch()
                    seconds = self.calls[0].since + self.limits.max_wait_ms / 1000 - time.monotonic()
                    if is_full or seconds <= 0 or self.closed:
                        for call in batch:
                            self.calls.remove(call)
                        return batch
                    self.changed.wait(seconds)
                elif self.closed:
                    return []
                else:
                    self.changed.wait()

    def _next_batch(self) -> tuple[list[ModelCall], bool]:
        """Return the oldest call with those that share its batch, and whether the batch is full."""
        oldest, room = self.calls[0], self.limits.max_batch
        if oldest.kind is None:
            return [oldest], True
        alike = [call for call in self.calls if call.kind == oldest.kind]
        batch = []
        for call in sorted(alike, key=lambda call: abs(call.length - oldest.length)):  # the oldest stays first
            if len(call.rows) <= room or call is oldest:
                batch.append(call)
                room -= len(call.rows)
        return batch, room <= 0 or len(batch) < len(alike)

    def _rows(self) -> int:
        return sum(len(call.rows) for call in self.calls)

    def _is_full_for(self, call: ModelCall) -> bool:
        """Return whether the queue has no room for a call. Cancelled calls are checked last: each takes a lock."""
        if self._rows() + len(call.rows) <= self.limits.max_queue:
            return False
        self._drop_cancelled()
        return self._rows() + len(call.rows) > self.limits.max_queue

    def _drop_cancelled(self) -> None:
        left = [call for call in self.calls if not call.answer.cancelled()]
        if dropped := len(self.calls) - len(left):
            self.metrics.dropped.labels(self.name).inc(dropped)
            self.calls = deque(left)

    def _answer(self, batch: list[ModelCall]) -> None:
        """Compute a batch. If it fails, compute each call alone, so that an error in one does not fail the others."""
        rows = [row for call in batch for row in call.rows]
        began = time.monotonic()
        try:
            found = iter(batch[0].compute(self.run, rows))
            results = [[next(found) for _ in call.rows] for call in batch]
        except Exception as error:
            if len(batch) == 1:
                batch[0].answer.set_exception(error)
                return
            for call in batch:
                self._answer([call])
            return
        if batch[0].kind is not None:
            self.metrics.batch_rows.labels(self.name).observe(len(rows))
            self.metrics.batch_seconds.labels(self.name).observe(time.monotonic() - began)
        for call, result in zip(batch, results, strict=True):
            call.answer.set_result(result)
