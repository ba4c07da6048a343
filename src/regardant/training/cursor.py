"""The position of a training, the numbers of an update, and the result."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from regardant.training.early_stopping import BestValidation
from regardant.training.metrics import Metric

ADDED = {"parts", "skipped", "skipped_in_a_row", "usual_loss", "returns", "returns_in_a_row"}
"""Fields of the cursor that checkpoints of earlier versions lack."""

NEARLY = 0.1
"""Share by which updates may differ from those announced without a word."""


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
    """Parts in which a batch is read, since a whole one did not fit into memory."""
    skipped: int = 0
    """Updates that were left out, since their gradients were not finite."""
    skipped_in_a_row: int = 0
    """Those of the last reported updates, without one that was made after them."""
    usual_loss: float | None = None
    """Running mean of the losses of calm reports, where spikes are watched for."""
    returns: int = 0
    """Returns to earlier weights after a spike of the loss."""
    returns_in_a_row: int = 0
    """Those without a calm report since."""


@dataclass(frozen=True)
class Outcome:
    """Result of a training."""

    cursor: Cursor
    finished: bool
    """False: interrupted, and can be resumed."""
    targets: int
    """Targets trained on since the start or resume."""
    metric: Metric
    """The metric that selected the best weights."""
    patience: int | None = None
    """Validations without a better one after which training stops early."""
    announced: int | None = None
    """Updates that the plan announced. None: the budget was changed afterwards."""

    @property
    def best(self) -> float:
        """Value of that metric for the best weights."""
        return self.metric.score(self.cursor.best)

    def summary(self) -> list[str]:
        """Return lines for people: what was done, and why it is not what was announced where it is not."""
        cursor, made = self.cursor, self.cursor.update
        share = cursor.validation_seconds / cursor.seconds if cursor.seconds else 0.0
        line = (
            f"{made:,} updates in {cursor.seconds / 60:.1f} minutes ({share:.0%} of it validation), "
            f"best validation {self.metric.name} {self.best:.4g} at update {cursor.best_update:,}"
        )
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
