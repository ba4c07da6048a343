"""Metrics of a validation: their direction, and the one that selects the best weights."""

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
