"""Rollback to earlier weights after a spike of the loss (`training.spike_factor`).

While the loss is normal, a snapshot of the weights, the optimizers and the average is kept at every report. A loss
above a multiple of its running mean restores the snapshot, and training continues with the batches that follow. All
decisions depend on the number of the update and on losses alone, and the snapshot is in the checkpoint, so that a
resumed run ends bit-equal. Rank 0 decides; the others follow before their next update.
"""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from regardant.errors import RunError
from regardant.training.averaging import Average
from regardant.training.cursor import Cursor
from regardant.training.processes import Act
from regardant.training.schedules import LOWER_RATE

MOST_RETURNS = 3
"""Maximum number of returns without a normal loss in between. The next spike stops training."""

MEMORY = 0.9
"""Decay of the running mean of the loss (`Cursor.usual_loss`)."""


class Calm:
    """Snapshot of a model, its optimizers and its average."""

    def __init__(self, model: nn.Module, optimizers: Sequence[Optimizer], average: Average) -> None:
        self.model, self.optimizers, self.average = model, optimizers, average
        self.snapshot: dict[str, Any] | None = None

    def keep(self) -> None:
        """Keep a snapshot of the current state."""
        self.snapshot = copy.deepcopy(
            {
                "model": self.model.state_dict(),
                "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
                "average": self.average.state_dict(),
            }
        )

    def restore(self) -> None:
        """Restore the last snapshot."""
        assert self.snapshot is not None
        self.model.load_state_dict(self.snapshot["model"])
        for optimizer, saved in zip(self.optimizers, self.snapshot["optimizers"], strict=True):
            optimizer.load_state_dict(copy.deepcopy(saved))  # an optimizer keeps the tensors that it loads
        self.average.load_state_dict(self.snapshot["average"])

    def nbytes(self) -> int:
        """Return the bytes of the snapshot. Tied weights count once."""
        return sum({one.data_ptr(): one.nbytes() for one in _storages(self.snapshot)}.values())


def act_after(loss: float, factor: float, cursor: Cursor) -> Act | None:
    """Return the act that follows a reported loss, None for no act, and record the loss in the cursor.

    Raises RunError for a loss that is still too high after MOST_RETURNS returns.
    """
    if not math.isfinite(loss):
        return None  # updates that are not finite are skipped anyway
    if cursor.usual_loss is None or loss <= factor * cursor.usual_loss:
        usual = loss if cursor.usual_loss is None else cursor.usual_loss
        cursor.usual_loss = MEMORY * usual + (1 - MEMORY) * loss
        cursor.returns_in_a_row = 0
        return Act.KEEP
    if cursor.returns_in_a_row == MOST_RETURNS:
        raise RunError(
            f"the loss of update {cursor.update:,} is {loss:.4g} (running mean {cursor.usual_loss:.4g}), even after "
            f"{MOST_RETURNS} returns to earlier weights: train anew with {LOWER_RATE}, or with a higher "
            "training.spike_factor"
        )
    cursor.returns_in_a_row += 1
    return Act.RETURN


def _storages(state: Any) -> Iterator[torch.UntypedStorage]:
    """Yield the memory of each tensor in nested containers."""
    if isinstance(state, Tensor):
        yield state.untyped_storage()
    elif isinstance(state, Mapping):
        for one in state.values():
            yield from _storages(one)
    elif isinstance(state, list | tuple):
        for one in state:
            yield from _storages(one)
