"""The position of a training, the numbers of an update, and the result."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from regardant.training.metrics import BestValidation, Metric

ADDED = {
    "kept",
    "kept_update",
    "parts",
    "skipped",
    "skipped_in_a_row",
    "usual_loss",
    "returns_in_a_row",
}
"""Fields of the cursor that checkpoints of earlier versions lack."""

REMOVED = {"returns"}
"""Fields of the cursor in checkpoints of earlier versions that are no longer read."""

NEARLY = 0.1
"""Relative difference from the announced number of updates above which the summary explains it."""


@dataclass
class Cursor(BestValidation):
    """Position of a run, with its best validation."""

    update: int = 0
    epoch: int = 0
    batch: int = 0
    """Batches of this epoch that are consumed."""
    seconds: float = 0.0
    """Training and validation time, over all resumes."""
    validation_seconds: float = 0.0
    validated_at: int = 0
    """The update of the last validation."""
    parts: int = 1
    """Number of parts that each batch is split into, if whole batches did not fit into memory."""
    skipped: int = 0
    """Updates that were skipped, since their gradients were not finite."""
    skipped_in_a_row: int = 0
    """Skipped updates since the last one that was made, as of the last report."""
    usual_loss: float | None = None
    """Running mean of the reported losses, without spikes. None: nothing reported yet, or no `spike_factor`."""
    returns_in_a_row: int = 0
    """Returns since the last report without a spike."""


@dataclass(frozen=True)
class Outcome:
    """Result of a training."""

    cursor: Cursor
    finished: bool
    """False: interrupted, and can be resumed."""
    targets: int
    """Targets trained on since the start or resume."""
    metric: Metric
    """The metric that selected the weights."""
    patience: int | None = None
    """Number of validations without improvement after which training stops early. None: never."""
    announced: int | None = None
    """Number of updates that the plan announced. None: the settings were changed afterwards."""

    @property
    def best(self) -> float:
        """Value of the metric in the best validation."""
        return self.metric.score(self.cursor.best)

    def summary(self) -> list[str]:
        """Return lines of text: updates, time and best validation, and why the updates differ from those announced."""
        cursor, made = self.cursor, self.cursor.update
        share = cursor.validation_seconds / cursor.seconds if cursor.seconds else 0.0
        line = (
            f"{made:,} updates in {cursor.seconds / 60:.1f} minutes ({share:.0%} of it validation), "
            f"best validation {self.metric.name} {self.best:.4g} at update {cursor.best_update:,}"
        )
        if cursor.kept_update > cursor.best_update:
            value = self.metric.score(cursor.kept)
            line += f", kept weights of update {cursor.kept_update:,} with {value:.4g}, which differs by noise only"
        if self.announced is None or abs(made - self.announced) <= NEARLY * self.announced:
            return [line]
        if made > self.announced:
            why = "updates were faster than measured before training"
        elif cursor.stops(self.patience):
            why = f"{self.patience} validations in a row were not better"
        else:
            why = "updates were slower than measured before training, and the minutes of the budget were over"
        return [line, f"{self.announced:,} updates were announced and {made:,} made: {why}"]


class Update(NamedTuple):
    """Numbers of one update, on the device."""

    plain: Tensor
    """Loss without regularisation, summed over the targets."""
    targets: int
    norm: Tensor
    """Norm of the gradient before clipping."""
