"""Translation quality by sacreBLEU: BLEU, chrF and TER, each with the signature that makes it comparable.

Post 2018, "A Call for Clarity in Reporting BLEU Scores", https://arxiv.org/abs/1804.08771. The interval holds 95 % of
the scores of resampled sentences: Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation".
sacreBLEU's own (`--confidence`) has the same width and is centred on the mean of the resamples.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import _bootstrap_resample

from regardant.config import Config
from regardant.errors import DataError

TextScoreName = Literal["bleu", "chrf", "exact_match", "word_error_rate", "bracket_f1", "well_formed"]
"""Names of `evaluation.texts.TEXT_SCORES`."""


class TranslationMetrics(Config):
    """The comparison of translations with their references."""

    metrics: tuple[TextScoreName, ...] = ("bleu",)
    """Scores computed by every validation beside the loss, and by `evaluate`. The first selects the best weights."""

    tokenize: Literal["13a", "none", "intl", "char"] = "13a"
    """Tokenisation for BLEU: 13a (words by mteval-v13a), none (split at spaces), intl (words by mteval-v14), or
    char (characters)."""

    lowercase: bool = False
    """Ignore case in BLEU and chrF. TER, as its authors defined it, always ignores case."""

    bootstrap_samples: int = Field(1000, ge=2)
    """Number of bootstrap resamples for the interval of BLEU. Each takes 48 bytes of memory per sentence."""


class ResampledBleu(NamedTuple):
    """BLEU of a corpus, with its uncertainty by resampled sentences."""

    bleu: float
    interval: tuple[float, float]
    """Range from the 2.5 % to the 97.5 % quantile of BLEU over the resamples."""
    signature: str
    """Signature of BLEU with the number of resamples and their seed."""


@dataclass(frozen=True)
class TranslationScores:
    """Corpus scores from 0 to 100, higher is better. TER is an error rate: lower is better, and it may exceed 100."""

    bleu: float
    chrf: float
    ter: float
    signature: str
    """Signature of BLEU."""
    chrf_signature: str
    ter_signature: str
    bleu_interval: tuple[float, float]
    """95 % interval of BLEU, by bootstrap over sentences."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"bleu_interval": list(self.bleu_interval)}


def score(hypotheses: Sequence[str], references: Sequence[str], config: TranslationMetrics) -> TranslationScores:
    """Return all scores of a corpus with a reference for each hypothesis. 1,000 sentences take seconds, mostly for TER.

    Raises DataError for unequal counts, or none at all.
    """
    check_counts(hypotheses, references)
    bleu, chrf, ter = bleu_metric(config), chrf_metric(config), TER()
    counts = bleu._extract_corpus_statistics(hypotheses, [references])
    resampled = bleu_with_interval(bleu, counts, config.bootstrap_samples)
    chrf_score = chrf.corpus_score(hypotheses, [references])
    ter_score = ter.corpus_score(hypotheses, [references])
    return TranslationScores(
        bleu=resampled.bleu,
        chrf=chrf_score.score,
        ter=ter_score.score,
        signature=resampled.signature,
        chrf_signature=str(chrf.get_signature()),
        ter_signature=str(ter.get_signature()),
        bleu_interval=resampled.interval,
    )


def bleu_with_interval(bleu: BLEU, counts: Sequence[Any], samples: int) -> ResampledBleu:
    """Return BLEU, and its interval over `samples` resamples of the sentences.

    `counts` holds the statistics of each sentence, which `bleu` extracts (`_extract_corpus_statistics`).
    """
    score = bleu._aggregate_and_compute(list(counts)).score
    seed, resampled = _bootstrap_resample(list(counts), bleu, samples)
    low, high = np.quantile([one.score for one in resampled], [0.025, 0.975])
    signature = bleu.get_signature()
    signature.update("bs", samples)
    signature.update("seed", seed)
    # Resamples are summed in single precision: if all are equal, the score may lie outside by a rounding error.
    interval = min(float(low), score), max(min(float(high), 100.0), score)
    return ResampledBleu(score, interval, str(signature))


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str], config: TranslationMetrics) -> float:
    """Return BLEU alone, without an interval, in a fraction of the time: validation in training needs no more."""
    check_counts(hypotheses, references)
    return bleu_metric(config).corpus_score(hypotheses, [references]).score


def bleu_metric(config: TranslationMetrics) -> BLEU:
    """Return the BLEU metric of a configuration."""
    # With `none` the text is meant to be tokenised already: `force` silences the warning of sacreBLEU that it looks so.
    return BLEU(tokenize=config.tokenize, lowercase=config.lowercase, force=config.tokenize == "none")


def chrf_metric(config: TranslationMetrics) -> CHRF:
    """Return the chrF metric of a configuration."""
    return CHRF(lowercase=config.lowercase)


def check_counts(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Raise DataError for unequal counts, or none at all."""
    if len(hypotheses) != len(references) or not references:
        raise DataError(
            f"{len(hypotheses)} translations for {len(references)} references; "
            "give one translation for each reference, and at least one"
        )
