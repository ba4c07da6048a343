"""Comparison of several translations of one test set: scores by source length, and significance of differences.

Differences are tested by paired bootstrap over sentences, with the resamples of sacreBLEU. The p of sacreBLEU counts
the upper tail of the resampled differences alone; p is two-sided here (`evaluation.paired`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Score
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import _bootstrap_resample

from regardant.evaluation.paired import Difference, difference_by_bootstrap
from regardant.evaluation.translation import (
    TranslationMetrics,
    bleu_metric,
    bleu_with_interval,
    check_counts,
    chrf_metric,
)


@dataclass(frozen=True)
class LengthScore:
    """BLEU of the sentences in a range of source lengths."""

    words: tuple[int, int]
    """(fewest, most) words of a source, as separated by spaces."""
    sentences: int
    bleu: float
    interval: tuple[float, float]
    """95 % interval of BLEU, by bootstrap over sentences."""


@dataclass(frozen=True)
class ComparedTranslation:
    """Scores of one translation."""

    bleu: float
    interval: tuple[float, float]
    """95 % interval of BLEU, by bootstrap over sentences."""
    chrf: float
    by_length: list[LengthScore]
    """BLEU by source length, shortest first: a quarter of the sentences each, as far as equal lengths allow."""
    against_first: Difference | None
    """Difference from the first translation. None for the first itself."""


@dataclass(frozen=True)
class Signatures:
    """Signatures that make the scores comparable with others."""

    bleu: str
    """Signature of BLEU with the resamples of the paired test."""
    chrf: str


def compare_translations(
    sources: Sequence[str],
    references: Sequence[str],
    translations: Sequence[Sequence[str]],
    config: TranslationMetrics,
) -> tuple[list[ComparedTranslation], Signatures]:
    """Score every translation, and test each later one against the first. About a second per 1,000 sentences of each.

    Raises DataError for unequal counts of lines, or none at all.
    """
    for lines in (sources, *translations):
        check_counts(lines, references)
    bleu, chrf, samples = bleu_metric(config), chrf_metric(config), config.bootstrap_samples
    lengths = [_words(source) for source in sources]
    quarters = length_quarters(sources)
    counts = [bleu._extract_corpus_statistics(lines, [references]) for lines in translations]
    scores = [bleu_with_interval(bleu, one, samples) for one in counts]
    found = []
    for number, (lines, own, score) in enumerate(zip(translations, counts, scores, strict=True)):
        against = None
        if number:
            resampled = _resampled_differences(counts[0], own, samples)
            against = difference_by_bootstrap(score.bleu - scores[0].bleu, resampled, len(sources))
        by_length = [_of_quarter(rows, lengths, own, bleu, samples) for rows in quarters]
        chrf_score = chrf.corpus_score(lines, [references]).score
        found.append(ComparedTranslation(score.bleu, score.interval, chrf_score, by_length, against))
    return found, Signatures(scores[0].signature, str(chrf.get_signature()))


def length_quarters(sources: Sequence[str]) -> list[list[int]]:
    """Return the rows of four classes of sources, the shortest first, cut at the quartiles of their numbers of words.

    Sources of one length are in one class, so that there may be fewer than four.
    """
    lengths = np.array([_words(source) for source in sources])
    places = np.searchsorted(np.quantile(lengths, [0.25, 0.5, 0.75]), lengths)
    return [np.flatnonzero(places == place).tolist() for place in np.unique(places)]


def _of_quarter(
    rows: Sequence[int], lengths: Sequence[int], counts: Sequence[Any], bleu: BLEU, samples: int
) -> LengthScore:
    words = [lengths[row] for row in rows]
    score = bleu_with_interval(bleu, [counts[row] for row in rows], samples)
    return LengthScore((min(words), max(words)), len(rows), score.bleu, score.interval)


def _words(source: str) -> int:
    return len(source.split())


def _resampled_differences(first: Sequence[Any], other: Sequence[Any], samples: int) -> NDArray[np.float64]:
    """Return the difference in BLEU of each resample of the sentences, given the counts of both translations."""
    # The counts of both are resampled side by side, so that a resample holds the same sentences of both.
    paired = [[*one, *another] for one, another in zip(first, other, strict=True)]
    _, resampled = _bootstrap_resample(paired, _BleuDifference(), samples)
    return np.array([score.score for score in resampled], dtype=np.float64)


class _BleuDifference(BLEU):
    """Gain in BLEU of a second translation over a first, from their counts side by side."""

    def _compute_score_from_stats(self, stats: Any) -> Score:  # type: ignore[override]
        half = len(stats) // 2
        first, other = super()._compute_score_from_stats(stats[:half]), super()._compute_score_from_stats(stats[half:])
        return Score("BLEU difference", other.score - first.score)
