"""Metrics of a validation: their direction, the one that selects the best weights, and when training gives up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from regardant.config.did_you_mean import did_you_mean
from regardant.errors import ConfigError


@dataclass(frozen=True)
class Metric:
    """A number that a validation gives, with its direction."""

    name: str
    higher_is_better: bool
    unit: str = ""
    noise: float = 0.0
    """Difference between two validations that does not tell which weights are better, in the metric's unit."""

    def score(self, value: float) -> float:
        """Return the score of a value, where higher is better. Given a score, return its value."""
        return value if self.higher_is_better else -value


def selecting_metric(metrics: Sequence[Metric], best_by: str | None) -> Metric:
    """Return the metric that selects the best weights: the one named `best_by`, or the first if that is None.

    Raises ConfigError if no metric has that name.
    """
    by_name = {metric.name: metric for metric in metrics}
    if best_by is None:
        return metrics[0]
    if best_by not in by_name:
        allowed = f"allowed: {', '.join(by_name)}{did_you_mean(best_by, by_name)}"
        raise ConfigError(f"training.best_by: given {best_by!r}; {allowed}")
    return by_name[best_by]


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
