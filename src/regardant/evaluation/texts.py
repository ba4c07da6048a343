"""Scores of generated texts, each against one reference, by their names in a recipe.

The word error rate, computed by jiwer, is the number of words to substitute, insert and delete, over the words of all
references.
"""

from collections.abc import Callable, Sequence

from regardant.evaluation.translation import TextScoreName, TranslationMetrics, check_counts, chrf_metric, corpus_bleu
from regardant.evaluation.trees import bracket_f1, well_formed


class TextMetrics(TranslationMetrics):
    """The comparison of texts with their references."""

    metrics: tuple[TextScoreName, ...] = ("chrf", "exact_match", "bleu")
    """Scores computed by every validation beside the loss, and by `evaluate`. The first selects the best weights.
    chrf by default: BLEU is 0 for texts of fewer than four words."""


def exact_match(texts: Sequence[str], references: Sequence[str]) -> float:
    """Return the share of texts that equal their reference, from 0 to 1."""
    check_counts(texts, references)
    return sum(text == reference for text, reference in zip(texts, references, strict=True)) / len(references)


def word_error_rate(texts: Sequence[str], references: Sequence[str]) -> float:
    """Return the word error rate of all texts: 0 is perfect, and values above 1 are possible."""
    check_counts(texts, references)
    import jiwer  # imported late: a translator does not need it

    rate: float = jiwer.wer(list(references), list(texts))
    return rate


TEXT_SCORES: dict[TextScoreName, Callable[[Sequence[str], Sequence[str], TranslationMetrics], float]] = {
    "bleu": corpus_bleu,
    "chrf": lambda texts, references, config: chrf_metric(config).corpus_score(texts, [references]).score,
    "exact_match": lambda texts, references, config: exact_match(texts, references),
    "word_error_rate": lambda texts, references, config: word_error_rate(texts, references),
    "bracket_f1": lambda texts, references, config: bracket_f1(texts, references),
    "well_formed": lambda texts, references, config: well_formed(texts),
}
"""Scores by name. All are quick enough for validation during training."""

OF_RAW_REFERENCES: frozenset[TextScoreName] = frozenset({"bracket_f1"})
"""Scores of references whose unknown words are not replaced: a word with its brackets, such as "sleeps))", would leave
a tree open."""
