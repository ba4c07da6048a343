"""The return to calm weights after a spike of the loss (`training.spike_factor`).

While the loss is as usual, a snapshot of the weights, the optimizers and the average is kept at every report. A loss
that is several times the usual one restores the snapshot, and training goes on with the batches that follow. All
decisions depend on the number of the update and on losses alone, and the snapshot is in the checkpoint, so that a
resumed run ends bit-equal. The first process decides; the others follow its order before their next update.
"""

import copy
import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from torch import nn
from torch.optim import Optimizer

from regardant.errors import RunError
from regardant.training.averaging import Average
from regardant.training.cursor import Cursor

MOST_RETURNS = 3
"""Returns without a calm report in between after which training stops."""

MEMORY = 0.9
"""Share of the usual loss before a report in the usual loss after it."""


class Order(IntEnum):
    """Order to every process, which obeys it before its next update."""

    NOTHING = 0
    KEEP = 1
    RETURN = 2


class Calm:
    """The snapshot of a training."""

    def __init__(self, model: nn.Module, optimizers: Sequence[Optimizer], average: Average) -> None:
        self.model, self.optimizers, self.average = model, optimizers, average
        self.snapshot: dict[str, Any] | None = None

    def obey(self, order: Order) -> None:
        """Keep a snapshot of the present state, or return to the last one."""
        if order == Order.KEEP:
            self.snapshot = copy.deepcopy(
                {
                    "model": self.model.state_dict(),
                    "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
                    "average": self.average.state_dict(),
                }
            )
        elif order == Order.RETURN:
            assert self.snapshot is not None
            state = copy.deepcopy(self.snapshot)  # optimizers keep the tensors that they load
            self.model.load_state_dict(state["model"])
            for optimizer, kept in zip(self.optimizers, state["optimizers"], strict=True):
                optimizer.load_state_dict(kept)
            self.average.load_state_dict(state["average"])


def order_after(loss: float, factor: float, cursor: Cursor) -> Order:
    """Return what follows from the loss of a report, and count it. Raises RunError for a loss that stays too high."""
    if not math.isfinite(loss):
        return Order.NOTHING  # updates that are not finite are left out anyway
    if cursor.usual_loss is None or loss <= factor * cursor.usual_loss:
        usual = loss if cursor.usual_loss is None else cursor.usual_loss
        cursor.usual_loss = MEMORY * usual + (1 - MEMORY) * loss
        cursor.returns_in_a_row = 0
        return Order.KEEP
    if cursor.returns_in_a_row == MOST_RETURNS:
        raise RunError(
            f"the loss of update {cursor.update:,} is {loss:.4g}, usual is {cursor.usual_loss:.4g}, also after "
            f"{MOST_RETURNS} returns to earlier weights: train anew with a lower training.schedule.learning_rate, or a "
            "higher training.spike_factor"
        )
    cursor.returns += 1
    cursor.returns_in_a_row += 1
    return Order.RETURN
