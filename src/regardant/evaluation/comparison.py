"""Comparison of several translations of one test set: scores by source length, and significance of differences.

Differences are tested by sacreBLEU's own paired bootstrap resampling: Koehn 2004, "Statistical significance tests for
machine translation evaluation", https://aclanthology.org/W04-3250, in the two-sided form of Moses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Score
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest, Result, _bootstrap_resample

from regardant.evaluation.paired import Difference
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
    bleu, chrf = bleu_metric(config), chrf_metric(config)
    named = [(str(number), lines) for number, lines in enumerate(translations)]
    signatures, tested = PairedTest(named, {"BLEU": bleu}, [references], "bs", n_samples=config.bootstrap_samples)()
    quarters = length_quarters(sources)
    matches = [bleu._extract_corpus_statistics(lines, [references]) for lines in translations]
    results = [one for one in tested["BLEU"] if isinstance(one, Result)]
    found = []
    for number, (lines, result) in enumerate(zip(translations, results, strict=True)):
        against = None
        if number:
            against = _difference(results[0], result, matches[0], matches[number], config.bootstrap_samples)
        by_length = [_of_quarter(rows, sources, references, lines, config) for rows in quarters]
        _, interval = bleu_with_interval(bleu, lines, references, config.bootstrap_samples)
        score = chrf.corpus_score(lines, [references]).score
        found.append(ComparedTranslation(result.score, interval, score, by_length, against))
    return found, Signatures(str(signatures["BLEU"]), str(chrf.get_signature()))


def length_quarters(sources: Sequence[str]) -> list[list[int]]:
    """Return the rows of four classes of sources, the shortest first, cut at the quartiles of their numbers of words.

    Sources of one length are in one class, so that there may be fewer than four.
    """
    lengths = np.array([_words(source) for source in sources])
    places = np.searchsorted(np.quantile(lengths, [0.25, 0.5, 0.75]), lengths)
    return [np.flatnonzero(places == place).tolist() for place in np.unique(places)]


def _of_quarter(
    rows: Sequence[int],
    sources: Sequence[str],
    references: Sequence[str],
    translation: Sequence[str],
    config: TranslationMetrics,
) -> LengthScore:
    lengths = [_words(sources[row]) for row in rows]
    parts = [translation[row] for row in rows], [references[row] for row in rows]
    bleu, interval = bleu_with_interval(bleu_metric(config), *parts, config.bootstrap_samples)
    return LengthScore((min(lengths), max(lengths)), len(rows), bleu, interval)


def _words(source: str) -> int:
    return len(source.split())


def _difference(first: Result, other: Result, first_matches: Any, other_matches: Any, samples: int) -> Difference:
    difference = other.score - first.score
    # The paired test gives no interval of the difference, so the counts of both translations are resampled jointly.
    paired = [[*one, *another] for one, another in zip(first_matches, other_matches, strict=True)]
    _, resampled = _bootstrap_resample(paired, _BleuDifference(), samples)
    differences = np.array([score.score for score in resampled])
    low, high = np.quantile(differences, [0.025, 0.975])
    # If all resamples tie, sacreBLEU returns the smallest possible p, as if equal scores were significant.
    assert other.p_value is not None
    return Difference(difference, (float(low), float(high)), other.p_value if differences.any() else 1.0)


class _BleuDifference(BLEU):
    """Gain in BLEU of a second translation over a first, from their counts side by side."""

    def _compute_score_from_stats(self, stats: Any) -> Score:  # type: ignore[override]
        half = len(stats) // 2
        first, other = super()._compute_score_from_stats(stats[:half]), super()._compute_score_from_stats(stats[half:])
        return Score("BLEU difference", other.score - first.score)
