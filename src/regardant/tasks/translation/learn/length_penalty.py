"""Choice of the length penalty: of several, the one whose translations of validation text score best.

Likelier translations are shorter, and which penalty balances that depends on model and text (Murray and Chiang 2018,
"Correcting Length Bias in Neural Machine Translation", https://arxiv.org/abs/1808.10006).
"""

from collections.abc import Mapping, Sequence

from regardant.evaluation.texts import TEXT_SCORES
from regardant.tasks.base import Log
from regardant.tasks.sequence_to_sequence.config import TEXT_METRICS
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.use.translator import Translator

FEWEST, SENTENCES = 100, 1000
"""Fewest validation sentences whose scores tell penalties apart, and the most that are translated."""


def choose_length_penalty(
    translator: Translator, text: Mapping[str, Sequence[str]], config: TranslationConfig, log: Log
) -> float:
    """Return the one of `config.length_penalties` with the best score on validation text (`source`, `target`).

    The score is the first of `evaluation.metrics`; of equal scores the first penalty is returned. Too few sentences, or
    no penalties, leave that of `generation` as it is.
    """
    sources, references = list(text["source"][:SENTENCES]), list(text["target"][:SENTENCES])
    if not config.length_penalties:
        return config.generation.length_penalty
    if len(sources) < FEWEST:
        log(f"{len(sources)} validation sentences are too few to choose a length penalty by: {FEWEST} needed")
        return config.generation.length_penalty
    log(f"choosing one of {len(config.length_penalties)} length penalties on {len(sources):,} validation sentences")
    name = config.evaluation.metrics[0]
    scores: dict[float, float] = {}
    for penalty in config.length_penalties:
        found = translator.generate(sources, config.generation.replaced(length_penalty=penalty))
        scores[penalty] = TEXT_SCORES[name]([one.text for one in found], references, config.evaluation)
    best = max(scores, key=lambda penalty: TEXT_METRICS[name].score(scores[penalty]))
    told = ", ".join(f"{score:.2f} at {penalty:g}" for penalty, score in scores.items())
    log(f"length penalty {best:g} ({name} {told})")
    return best
