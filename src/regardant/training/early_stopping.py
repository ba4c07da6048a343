"""Early stopping: the best validation so far, and the number of validations after which training gives up."""

import math
from dataclasses import dataclass


@dataclass
class BestValidation:
    """The best validation of a run so far, and the validations since."""

    best: float = -math.inf
    """Score of the best validation (`Metric.score`: higher is better)."""
    best_update: int = 0
    """The update before the best validation. 0: no validation yet."""
    without_better: int = 0
    """Validations since the best one."""

    def record(self, score: float, update: int) -> bool:
        """Record the validation after an update. Return whether it is the best so far.

        The first one is, whatever its score, so that a run always has weights. After a score of NaN, which compares
        with no number, any finite one is better.
        """
        best = -math.inf if math.isnan(self.best) else self.best
        if score > best or not self.best_update:
            self.best, self.best_update, self.without_better = score, update, 0
            return True
        self.without_better += 1
        return False

    def stops(self, patience: int | None) -> bool:
        """Return whether `patience` validations have passed since the best one. None: training never stops early."""
        return patience is not None and self.without_better >= patience
