"""Scores of generated texts against their references."""

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from regardant.evaluation.texts import TEXT_SCORES, exact_match
from regardant.evaluation.translation import TranslationMetrics, score
from regardant.tasks.sequence_to_sequence.generator import GeneratedText, TextGenerator, in_one_line

NAMED = ("word_error_rate", "bracket_f1", "well_formed")
"""Scores that are shown only if `evaluation.metrics` names them."""


def score_texts(
    generator: TextGenerator,
    generated: Sequence[GeneratedText],
    sources: Sequence[NDArray[Any]],
    references: Sequence[str],
    metrics: TranslationMetrics,
) -> dict[str, Any]:
    """Return the scores of texts that were generated for encoded sources: BLEU, chrF, TER, exact match, the perplexity
    of the references, and further scores that `metrics` names."""
    texts = [one.text for one in generated]
    # sacreBLEU squeezes white space itself, so that its scores can be computed again from lines of raw references.
    lines, written = [in_one_line(one) for one in references], [generator.as_written(one) for one in references]
    scores = score(texts, lines, metrics).as_dict() | {"exact_match": exact_match(texts, written)}
    for name in metrics.metrics:
        if name not in scores:
            scores[name] = TEXT_SCORES[name](texts, written, metrics)
    return scores | {
        "perplexity": _perplexity(generator, sources, references),
        "sentences": len(texts),
        "split": sum(one.pieces > 1 for one in generated),
        "unfinished": sum(not one.finished for one in generated),
    }


def summary_of_texts(name: str, scores: dict[str, Any]) -> list[str]:
    """Return the scores as lines for people."""
    low, high = scores["bleu_interval"]
    lines = [
        f"{name}: BLEU {scores['bleu']:.2f} (95 % interval {low:.2f} to {high:.2f}), chrF {scores['chrf']:.2f}, "
        f"TER {scores['ter']:.2f}, exact {scores['exact_match']:.1%}, {scores['sentences']:,} sentences",
        f"  {scores['signature']}",
    ]
    if named := [f"{name.replace('_', ' ')} {scores[name]:.4f}" for name in NAMED if name in scores]:
        lines.append(f"  {', '.join(named)}")
    if scores["split"] or scores["unfinished"]:
        lines.append(f"  {scores['split']:,} sources read in parts, {scores['unfinished']:,} cut at the length limit")
    if cut := scores.get("cut", 0):
        lines.append(f"  sources cut to the model's length: {cut:,}")
    return lines


def _perplexity(generator: TextGenerator, sources: Sequence[NDArray[Any]], references: Sequence[str]) -> float | None:
    """Return the perplexity of the references per token. None if a pair is longer than the model."""
    targets = generator.tokenizer.encode_batch(list(references))
    if max(generator.lengths(sources, targets)) > generator.max_length:
        return None
    total = sum(generator.scores(sources, targets))
    return math.exp(min(50.0, -total / sum(len(ids) + 1 for ids in targets)))
