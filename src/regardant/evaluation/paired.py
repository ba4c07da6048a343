"""Significance of the difference of two systems: by paired bootstrap over items, or by the t-test over seeds.

Bootstrap: Koehn 2004, "Statistical significance tests for machine translation evaluation",
https://aclanthology.org/W04-3250. Its p is two-sided, by the shift method (Riezler and Maxwell 2005, "On some pitfalls
in automatic evaluation and significance testing for MT", https://aclanthology.org/W05-0908).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    """Two-sided p of a difference of this size by chance alone. By bootstrap of N items, at least 1 / (resamples + 1),
    and at least 2 / 2^N: the chance that all items differ in one direction."""

    def verdict(self, *, higher_is_better: bool = True) -> str:
        """Return the difference in words: better, worse, or no more than chance."""
        if self.p > LARGEST_P:
            return "not told from chance"
        return "better" if (self.difference > 0) == higher_is_better else "worse"


def paired_bootstrap(
    first: Sequence[float], other: Sequence[float], groups: Sequence[int] | None = None, samples: int = SAMPLES
) -> Difference:
    """Return the difference of the mean scores of answers, given the score of each answer by both systems.

    `groups` has the number of the item that each answer belongs to. Answers to one item, such as the labels of a text's
    words, depend on each other: items are resampled, each with all of its answers. None: each answer has its own item.
    """
    distances = np.asarray(other, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    _, places = np.unique(range(len(distances)) if groups is None else groups, return_inverse=True)
    sums, sizes = np.bincount(places, distances), np.bincount(places)
    generator = np.random.default_rng(0)
    rows = (generator.integers(0, len(sums), len(sums)) for _ in range(samples))
    resampled = np.array([sums[chosen].sum() / sizes[chosen].sum() for chosen in rows])
    return difference_by_bootstrap(float(sums.sum() / sizes.sum()), resampled, len(sums))


def difference_by_bootstrap(difference: float, resampled: NDArray[np.float64], items: int) -> Difference:
    """Return a difference with its interval and p, given the differences of resamples of so many items.

    Without a true difference, resamples would differ by chance around 0 as they do around `difference`. p is the share
    of them that are at least as far from `difference` as 0 is, on either side.
    """
    low, high = np.quantile(resampled, [0.025, 0.975])
    as_far = int((abs(resampled - difference) >= abs(difference)).sum())
    least = min(1.0, 2.0 ** (1 - items))  # all items in one direction; a few of them would seem to be far from chance
    return Difference(difference, (float(low), float(high)), max(least, (as_far + 1) / (len(resampled) + 1)))


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
