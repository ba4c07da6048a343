"""Training from a stream: each process reads its own shards, and plans batches within each buffer.

An epoch of the trainer is one buffer here. All processes plan the same number of batches for it: a batch of the
trainer consists of one batch of each process.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from regardant.data.shards import START, Position, Stream
from regardant.errors import DataError, RunError
from regardant.models.heads import Loss
from regardant.training.devices import trim_heap
from regardant.training.processes import ALONE, Group

STATE_BYTES = 4096
"""Maximum size of the position of a process, as JSON."""

MOST_EMPTY = 1000
"""Number of successive buffers without a batch after which training stops."""


class RowBuffer(Protocol):
    """Encoded rows that are trained on together."""

    def plan(self, generator: np.random.Generator, size: int) -> list[NDArray[np.int64]]:
        """Return the rows of each batch of this process, one of `size`, in training order."""

    def load(self, rows: NDArray[np.int64]) -> Any:
        """Return one batch as a `training.job.Batch`."""

    def count(self, rows: NDArray[np.int64]) -> int:
        """Return the number of targets of a batch."""


class PlannedStreamBatch(NamedTuple):
    """A planned batch of a stream."""

    buffer: RowBuffer
    rows: NDArray[np.int64]
    """Rows of this process. Empty if it has none left."""
    targets: int
    """Number of targets, over all processes."""


@dataclass(frozen=True)
class ShardedBatch:
    """A batch whose rows are spread over processes. Implements `training.job.Batch`."""

    own: Any
    """Rows of this process. None: it has none."""
    count: int
    """Number of targets, over all processes."""
    size: int
    """Number of processes."""

    def part(self, number: int, parts: int) -> Any:
        """Return rows of this process: all of them if there is one part for each process, else one of its parts."""
        if self.own is None:
            return ShardedBatch(None, 0, self.size)
        return self.own.part(number // self.size, parts // self.size)


class StreamedBatches:
    """The batches of a stream, buffer by buffer."""

    def __init__(self, stream: Stream[Any], seed: int) -> None:
        self.stream, self.seed = stream, seed
        self.share(ALONE)

    def share(self, group: Group) -> None:
        """Read as one process of a group, from the beginning of the stream."""
        self.group = group
        self.positions: list[Position] = [START] * group.size
        """Position where the buffer of each process begins."""
        self.stream.seek(START, rank=group.rank, size=group.size)
        self._epoch = -1
        self._planned: list[PlannedStreamBatch] = []

    def plan(self, epoch: int) -> Sequence[PlannedStreamBatch]:
        """Return the batches of a buffer: `epoch` is the number of the current one or the next. Raises DataError."""
        if epoch == self._epoch:
            return self._planned
        self._planned = []  # its buffer is freed before another is made
        for _ in range(MOST_EMPTY):
            position, buffer = self.stream.next()
            self.positions = self._gathered(position)
            self._planned = self._shared(buffer, np.random.default_rng([self.seed, epoch]))
            trim_heap()
            if self._planned:
                self._epoch = epoch
                return self._planned
        raise DataError(f"{MOST_EMPTY:,} buffers of the stream have no row to train on: see data.cleaning")

    def load(self, planned: PlannedStreamBatch) -> ShardedBatch:
        """Return a planned batch, with the rows of this process."""
        own = planned.buffer.load(planned.rows) if len(planned.rows) else None
        return ShardedBatch(own, planned.targets, self.group.size)

    def state_dict(self) -> dict[str, Any]:
        """Return the positions of all processes, for a checkpoint."""
        return {"positions": [json.dumps(position) for position in self.positions]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume at the buffer of a checkpoint. Raises RunError for another number of processes."""
        positions = [Position(*json.loads(position)) for position in state["positions"]]
        if len(positions) != self.group.size:
            raise RunError(
                f"the stream was read by {len(positions)} processes, and {self.group.size} cannot resume it: set "
                f"training.processes={len(positions)}"
            )
        self.share(self.group)
        self.positions = positions
        self.stream.seek(positions[self.group.rank], rank=self.group.rank, size=self.group.size)

    def _shared(self, buffer: RowBuffer, generator: np.random.Generator) -> list[PlannedStreamBatch]:
        """Plan the buffer of this process, in as many batches as the process with the most batches."""
        batches = buffer.plan(generator, self.group.size)
        most = int(self.group.gathered([len(batches)]).max())
        batches = divided(batches, most)
        counts = self.group.gathered([buffer.count(rows) if len(rows) else 0 for rows in batches]).sum(0).tolist()
        return [PlannedStreamBatch(buffer, rows, int(count)) for rows, count in zip(batches, counts, strict=True)]

    def _gathered(self, position: Position) -> list[Position]:
        written = json.dumps(position).encode()
        if len(written) > STATE_BYTES:
            raise RunError(
                f"the position in the stream takes {len(written)} bytes, and at most {STATE_BYTES} are exchanged"
            )
        rows = self.group.gathered(list(written.ljust(STATE_BYTES)))
        return [Position(*json.loads(bytes(row.astype(np.uint8)))) for row in rows.numpy()]


class StreamedJob:
    """Mixin of jobs that train on a stream, to be listed before the task's job among the bases. `batches` are those of
    a sample from the beginning of the stream, which planning measures.

    Implements `training.job.ReadsShards`.
    """

    stream: StreamedBatches
    batches: Any

    def share(self, group: Group) -> None:
        self.stream.share(group)

    def plan(self, epoch: int) -> Sequence[Any]:
        return self.stream.plan(epoch)

    def load(self, planned: Any) -> Any:
        return self.stream.load(planned) if isinstance(planned, PlannedStreamBatch) else self.batches.load(planned)

    def loss(self, model: nn.Module, batch: Any, device: torch.device) -> Loss:
        if isinstance(batch, ShardedBatch):  # of a process without a row: a pass for the others, whose loss is not used
            batch = self.batches.load(self.batches.median_batch())
        loss: Loss = super().loss(model, batch, device)  # type: ignore[misc]  # of the job that follows among the bases
        return loss

    def state_dict(self) -> dict[str, Any]:
        return self.stream.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.stream.load_state_dict(state)


def divided(batches: list[NDArray[np.int64]], count: int) -> list[NDArray[np.int64]]:
    """Return `count` batches with the same rows, made by halving the largest. Some are empty if rows are few."""
    batches = list(batches)
    while len(batches) < count:
        largest = max(range(len(batches)), key=lambda at: len(batches[at]), default=None)
        if largest is None or len(batches[largest]) < 2:
            batches.append(np.empty(0, np.int64))
        else:
            batches.append(batches[largest][1::2])
            batches[largest] = batches[largest][::2]
    return batches
