"""Measures of a translator's attention, over a run's validation pairs or others."""

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from statistics import fmean

import numpy as np
import torch
from torch import Tensor

from regardant.data.batching import pad
from regardant.data.treebank import ParsedSentence
from regardant.errors import DataError
from regardant.evaluation.alignment import Link, merge_to_words
from regardant.inspection import (
    agreement,
    attention_places,
    capture,
    explain,
    relation_scores,
    rollout,
)
from regardant.tasks import measures
from regardant.tasks.measures import SENTENCES, attended
from regardant.tasks.probe import Probe
from regardant.tasks.translation.look.alignment import BATCH, error_rates, word_attention, words_of_tokens
from regardant.tasks.translation.look.measure_tables import (
    CROSS,
    ENCODER,
    MEAN,
    ExplanationAgreement,
    TranslatorMeasures,
)
from regardant.tasks.translation.use.translator import Translator

EXPLAINED = 10
"""Number of pairs on which attention is compared with other explanations, which are costly."""

PARSED = 500
"""Maximum number of sentences read from a treebank."""


@dataclass(frozen=True)
class MeasuredPairs:
    """Pairs to measure over, with their gold alignments, if known."""

    name: str
    sources: Sequence[str]
    targets: Sequence[str]
    gold: Sequence[Set[Link]] | None = None


def measure(
    translator: Translator, pairs: MeasuredPairs, treebank: Iterable[ParsedSentence] | None = None
) -> TranslatorMeasures:
    """Measure a translator over the first pairs that fit the model, and over sentences of a treebank.

    Raises RunError for a model without attention, DataError where no pair or no sentence fits.
    """
    kept = _fitting(translator, pairs)
    general = measures.measure(
        translator.model, pairs.name, list(probes(translator, kept.sources, kept.targets)), "pair"
    )
    found = TranslatorMeasures(**vars(general), explained=min(EXPLAINED, len(kept.sources)))
    if CROSS in found.heads:
        _explain(translator, kept, found)
    else:
        found.notes.append("no cross-attention: no alignments, and no explanations")
    if CROSS in found.heads and kept.gold is not None:
        words = word_attention(translator, kept.sources, kept.targets)
        found.alignment = error_rates(words, kept.gold).tolist()
    elif CROSS in found.heads:
        found.notes.append("no gold alignments of these pairs: no error rates")
    if treebank is not None:
        _relate(translator, treebank, found)
    return found


def _fitting(translator: Translator, pairs: MeasuredPairs) -> MeasuredPairs:
    """Return the first pairs that are not blank and that fit the model."""
    sources, targets = pairs.sources[: 2 * SENTENCES], pairs.targets[: 2 * SENTENCES]
    fits = [n for n in translator.fitting(sources, targets) if sources[n].strip() and targets[n].strip()][:SENTENCES]
    if not fits:
        raise DataError(f"{pairs.name}: none of the first pairs fits {translator.max_length} tokens: give other ones")
    gold = None if pairs.gold is None else [pairs.gold[n] for n in fits]
    return MeasuredPairs(pairs.name, [pairs.sources[n] for n in fits], [pairs.targets[n] for n in fits], gold)


def _explain(translator: Translator, pairs: MeasuredPairs, found: TranslatorMeasures) -> None:
    model = translator.model
    embedding = model.representation("source").written
    taus: dict[tuple[int, int, bool], tuple[list[float], list[float]]] = {}
    between: list[float] = []
    sources, targets = pairs.sources[:EXPLAINED], pairs.targets[:EXPLAINED]
    few = list(probes(translator, sources, targets))
    crosses = attended(model, few, CROSS)
    owns = attended(model, few, ENCODER) if ENCODER in found.heads else None
    for source, target, cross in zip(sources, targets, crosses, strict=True):
        batch = translator.pairs([source], [target])
        explained = explain(model, embedding, batch.source[0], batch.target[0])
        between += agreement(explained.gradient, explained.ablation)
        rolled = None if owns is None else rollout(next(owns).weights)[-1]
        for place, weights in _ways(cross.weights, rolled):
            of_gradient, of_ablation = taus.setdefault(place, ([], []))
            of_gradient += agreement(weights, explained.gradient)
            of_ablation += agreement(weights, explained.ablation)
    found.explanations = [ExplanationAgreement(*place, *map(_mean, both)) for place, both in taus.items()]
    found.gradient_and_ablation = _mean(between)


def _ways(cross: Tensor, rolled: Tensor | None) -> Iterator[tuple[tuple[int, int, bool], Tensor]]:
    """Yield cross-attention [L, H, T, S] head by head, its mean over heads, and that mean followed through the encoder
    by `rolled` [S, S]."""
    for layer, heads in enumerate(cross.double()):
        for head, weights in enumerate(heads):
            yield (layer, head, False), weights
        yield (layer, MEAN, False), heads.mean(0)
        if rolled is not None:
            yield (layer, MEAN, True), heads.mean(0) @ rolled


def _relate(translator: Translator, treebank: Iterable[ParsedSentence], found: TranslatorMeasures) -> None:
    if ENCODER not in found.heads:
        found.notes.append("no self-attention of the encoder to compare with the treebank")
        return
    found.relations = relation_scores(between_words(translator, islice(treebank, PARSED)))
    if not found.relations:
        raise DataError("the treebank has too few sentences that fit the model, or no relation in them: give more")


def probes(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> Iterator[Probe]:
    """Yield pairs in batches for teacher forcing."""
    for start in range(0, len(sources), BATCH):
        rows = slice(start, start + BATCH)
        yield translator.probe(*translator.encoded(sources[rows], targets[rows], first_line=start + 1))


def between_words(
    translator: Translator, sentences: Iterable[ParsedSentence]
) -> Iterator[tuple[ParsedSentence, Tensor]]:
    """Yield the encoder's self-attention [L, H, V, V] between the words of parsed sentences. Those longer than the
    model are left out."""
    tokenizer, model = translator.tokenizers.source, translator.model
    places = [f"{name}.weights" for name in attention_places(model)["encoder.self_attention"]]
    encoded = ((sentence, tokenizer.encode(sentence.text)) for sentence in sentences)
    fitting = (both for both in encoded if len(both[1]) < translator.max_length)
    while several := list(islice(fitting, BATCH)):
        with torch.inference_mode(), capture(model, places) as records:
            model.encode(pad([ids for _, ids in several]).to(translator.device))
        layers = torch.stack([records[place][0] for place in places], 1).numpy()
        for (sentence, ids), weights in zip(several, layers, strict=True):
            words, size = words_of_tokens(tokenizer, sentence.text, sentence.spans), len(ids) + 1
            merged = [[merge_to_words(head[:size, :size], words, words) for head in layer] for layer in weights]
            found = torch.from_numpy(np.array(merged))
            missing = len(sentence.words) - found.shape[-1]  # the last words may have no token of their own
            yield sentence, torch.nn.functional.pad(found, (0, missing, 0, missing))


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan
