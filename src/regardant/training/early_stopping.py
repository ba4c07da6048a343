"""Early stopping: the best validation so far, the weights to keep, and when training gives up."""

import math
from dataclasses import dataclass


@dataclass
class BestValidation:
    """The best validation of a run so far, and the validations since."""

    best: float = -math.inf
    """Score of the best validation (`Metric.score`: higher is better)."""
    best_update: int = 0
    """The update before the best validation. 0: no validation yet."""
    kept: float = -math.inf
    """Score of the weights that are kept: the best, or a later one that is worse by less than noise."""
    kept_update: int = 0
    """The update whose weights are kept."""
    without_better: int = 0
    """Validations since the best one."""

    def record(self, score: float, update: int, noise: float = 0.0) -> bool:
        """Record the validation after an update. Return whether its weights are to be kept.

        They are if the score is above the best one less `noise`: of weights that a validation cannot tell apart, the
        later ones are kept (decision 5). The first weights are kept whatever their score, so that a run always has
        some. After a score of NaN, which compares with no number, any finite one is better.
        """
        best = -math.inf if math.isnan(self.best) else self.best
        first = not self.best_update
        keeps = first or score > best - noise
        if first or score > best:
            self.best, self.best_update, self.without_better = score, update, 0
        else:
            self.without_better += 1
        if keeps:
            self.kept, self.kept_update = score, update
        return keeps

    def stops(self, patience: int | None) -> bool:
        """Return whether `patience` validations have passed since the best one. None: training never stops early."""
        return patience is not None and self.without_better >= patience
