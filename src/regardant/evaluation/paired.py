"""Significance of the difference of two systems: by paired bootstrap over items, or by the t-test over seeds.

Bootstrap: Koehn 2004, "Statistical significance tests for machine translation evaluation",
https://aclanthology.org/W04-3250, in the two-sided form of Moses.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SAMPLES = 1000
"""Number of bootstrap resamples."""


LARGEST_P = 0.05
"""Largest p of a significant difference."""


@dataclass(frozen=True)
class Difference:
    """Difference of a system from the first one, in the unit of the score."""

    difference: float
    """Positive: higher than the first."""
    interval: tuple[float, float]
    """95 % interval: of differences on the same resampled items, or by Student's t over seeds."""
    p: float
    """Two-sided p of a difference of this size by chance alone. By bootstrap, at least 1 / (resamples + 1)."""

    def verdict(self, *, higher_is_better: bool = True) -> str:
        """Return the difference in words: better, worse, or no more than chance."""
        if self.p > LARGEST_P:
            return "not told from chance"
        return "better" if (self.difference > 0) == higher_is_better else "worse"


def paired_bootstrap(first: Sequence[float], other: Sequence[float], samples: int = SAMPLES) -> Difference:
    """Return the difference of the mean scores of items, given the score of each item by both systems."""
    distances = np.asarray(other, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    difference = float(distances.mean())
    generator = np.random.default_rng(0)
    rows = (generator.integers(0, len(distances), len(distances)) for _ in range(samples))
    resampled = np.array([distances[chosen].mean() for chosen in rows])
    low, high = np.quantile(resampled, [0.025, 0.975])
    as_far = int((abs(resampled - difference) >= abs(difference)).sum())
    return Difference(difference, (float(low), float(high)), (as_far + 1) / (samples + 1))


def paired_over_seeds(first: Sequence[float], other: Sequence[float]) -> Difference | None:
    """Return the mean difference of scores over seeds, by the paired t-test: each seed gives one score of both systems.

    None for a single seed, and for differences without a spread, which no test can judge.
    """
    from scipy import stats  # imported late: it takes a part of a second, and evaluations do not need it

    distances = np.asarray(other, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    if len(distances) < 2 or np.ptp(distances) == 0:
        return None
    tested = stats.ttest_1samp(distances, 0.0)
    low, high = tested.confidence_interval(0.95)
    return Difference(float(distances.mean()), (float(low), float(high)), float(tested.pvalue))
