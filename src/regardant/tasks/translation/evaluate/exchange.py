"""Test set of a translator with its translations, with which an export is compared."""

from collections.abc import Sequence
from typing import Any

import torch

from regardant.evaluation.translation import corpus_bleu
from regardant.interop.parity import TestTexts
from regardant.tasks.exchange import MOST_TEXTS, Exchange
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.evaluate.evaluation import TestSet
from regardant.tasks.translation.use.translator import Translator


def exchange_of(translator: Translator, given: TestSet, config: TranslationConfig) -> Exchange:
    """Return the pairs of a test set that fit the model, at most MOST_TEXTS, with the translator's answers."""
    sources, targets = translator.tokenizers.source, translator.tokenizers.target
    ids = zip(sources.encode_batch(given.sources), targets.encode_batch(given.references), strict=True)
    fits = [row for row, pair in enumerate(ids) if max(map(len, pair)) < translator.max_length][:MOST_TEXTS]
    references = [given.references[row] for row in fits]

    def answer(texts: Sequence[str]) -> list[str]:
        return [one.text for one in translator.generate(texts, config.generation)]

    def score(texts: Sequence[str], references: Sequence[str]) -> list[Any]:
        return [_log_probabilities(translator, *pair) for pair in zip(texts, references, strict=True)]

    def bleu(answers: Sequence[str], scores: Any) -> float:
        return corpus_bleu(answers, references, config.evaluation)

    def tokens(texts: Sequence[str], answers: Sequence[str]) -> int:
        return sum(len(one) + 1 for one in targets.encode_batch(list(answers)))

    test = TestTexts(given.name, [given.sources[row] for row in fits], references, "BLEU", bleu, tokens)
    return Exchange(test, answer, score)


def _log_probabilities(translator: Translator, text: str, reference: str) -> Any:
    """Return the log-probabilities of the tokens of a reference [T], EOS included."""
    batch = translator.pairs([text], [reference])
    with torch.inference_mode():
        known = translator.model.scores(**batch.inputs).log_softmax(-1)[0]
        return known.gather(1, batch.targets[0][:, None])[:, 0].float().cpu().numpy()
