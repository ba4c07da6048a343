"""The thread that owns the model of a run, and the queue in front of it.

A batch begins with the oldest call and takes the calls of its kind that are nearest to it in length, while their rows
fit. It is computed when it is full, or when its oldest call has waited for so long as the limits say. A model is not
safe to use from several threads, so all that a run computes for requests goes through its worker.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

from regardant.server.limits import RETRY_SECONDS, Limits, Refusal
from regardant.server.metrics import Metrics

Owned = TypeVar("Owned")
"""Type of what a thread owns: a run, or the runs that take turns in it."""

Compute = Callable[[Any, list[Any]], Sequence[Any]]
"""Returns a result for each row, given what the thread owns."""

JOIN_SECONDS = 5.0
"""Seconds that the last batch may take when the server ends. Its clients have left: all others are answered before."""


@dataclass(eq=False)
class ModelCall:
    """Rows of a request that wait for the model."""

    compute: Compute
    rows: list[Any]
    length: int = 0
    """Length of the longest row, in any unit: calls of like lengths share a batch."""
    kind: Hashable | None = None
    """Calls of one kind may share a batch. None: it is computed alone, and without waiting for others."""
    answer: Future[list[Any]] = field(default_factory=Future)
    """The results of the rows. A call whose answer is cancelled is not computed."""
    since: float = field(default_factory=time.monotonic)


class Worker(Generic[Owned]):
    """A run, or several, with a queue and a thread."""

    def __init__(self, name: str, run: Owned, limits: Limits, metrics: Metrics) -> None:
        self.name, self.run, self.limits, self.metrics = name, run, limits, metrics
        self.calls: deque[ModelCall] = deque()
        self.changed = Condition()
        self.closed = False
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
        """Put a call into the queue and return its answer, which is to come.

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
        """Answer the calls in the queue, and end the thread. A batch may take JOIN_SECONDS; then it is left alone."""
        with self.changed:
            self.closed = True
            self.changed.notify()
        self.thread.join(JOIN_SECONDS)

    def _work(self) -> None:
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
        """Return the oldest call with those that go with it, and whether no other row could be added."""
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
        """Return whether the queue has no room for a call. Looking for cancelled ones takes a lock of each."""
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
        """Compute a batch. If that fails, compute each call alone: a mistake in one is none of the others'."""
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
