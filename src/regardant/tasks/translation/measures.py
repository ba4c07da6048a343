"""A translator's attention in numbers, over a run's validation pairs or others: all measures of `inspection` at once.

RUN/measures/NAME.json    all digits
RUN/measures/NAME.txt     tables
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regardant.data.treebank import ParsedSentence
from regardant.errors import DataError, RunError
from regardant.evaluation.alignment import Link
from regardant.inspection import (
    Attended,
    HeadImportance,
    HeadMeasures,
    RelationScore,
    agreement,
    attention_kinds,
    explain,
    flow,
    head_importance,
    logit_lens,
    measure_heads,
    relation_scores,
    rollout,
)
from regardant.tasks.translation.alignment import BATCH, error_rates, word_attention
from regardant.tasks.translation.attended import attended, between_words, is_causal
from regardant.tasks.translation.translator import Translator
from regardant.training.checkpoints import write_atomically

SENTENCES = 100
"""Pairs that most is measured over: the first ones."""

EXPLAINED = 10
"""Of them, those on which attention is held against other explanations: each costs much."""

FLOWED = 3
"""Of them, those in which flow is sought: each costs more."""

PARSED = 500
"""Sentences of a treebank that are read."""

ENCODER, CROSS = "encoder.self_attention", "decoder.cross_attention"

MEAN = -1
"""The head that stands for the mean of a layer's heads."""


@dataclass(frozen=True)
class Agreement:
    """How far attention orders source tokens as two other explanations do: mean Kendall's tau over target tokens."""

    layer: int
    head: int
    """MEAN: the mean of the layer's heads."""
    rolled: bool
    """Whether followed on through the encoder by rollout."""
    gradient: float
    """With gradient x input."""
    ablation: float
    """With leaving one token out."""


@dataclass(frozen=True)
class LensLayer:
    """What the decoder would say after so many layers, in the mean over target tokens."""

    layers: int
    """0: the embeddings alone."""
    first: float
    """The share of tokens that are the likeliest."""
    rank: float
    """Of the token; the median."""
    probability: float
    """Of the token."""
    divergence: float
    """From the last layer's distribution, nats."""


@dataclass
class Measures:
    """All that was measured. What a model has none of is empty, and a note says so."""

    name: str
    """Of the pairs."""
    sentences: int
    explained: int
    heads: dict[str, HeadMeasures]
    """By kind of attention."""
    importance: dict[str, HeadImportance]
    rollout: dict[str, HeadMeasures] = field(default_factory=dict)
    """Up to every layer, as if it were a layer of one head."""
    flow: dict[str, HeadMeasures] = field(default_factory=dict)
    """From the last layer, rows divided by their sums, over the first few pairs."""
    explanations: list[Agreement] = field(default_factory=list)
    gradient_and_ablation: float = math.nan
    """How far these two agree, with which attention's agreement is to be compared."""
    lens: list[LensLayer] = field(default_factory=list)
    alignment: list[list[list[float]]] = field(default_factory=list)
    """The error rate by shift (0 or 1), layer and head, the last the mean of the others."""
    relations: list[RelationScore] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; what is no number is null."""
        kinds = {
            name: {kind: one.as_dict() for kind, one in getattr(self, name).items()}
            for name in ("heads", "importance", "rollout", "flow")
        }
        lists = {name: [asdict(one) for one in getattr(self, name)] for name in ("explanations", "lens", "relations")}
        plain = {name: value for name, value in vars(self).items() if name not in (*kinds, *lists)}
        return _without_nan({**plain, **kinds, **lists})

    def lines(self) -> list[str]:
        """Tables for people."""
        from regardant.tasks.translation.measures_told import told  # which reads this

        return told(self)

    def save(self, folder: Path) -> None:
        """Keep both in a folder."""
        write_atomically(folder / f"{self.name}.json", json.dumps(self.as_dict(), indent=1) + "\n")
        write_atomically(folder / f"{self.name}.txt", "".join(f"{line}\n" for line in self.lines()))


@dataclass(frozen=True)
class Measured:
    """The pairs to measure over, and what is known of them."""

    name: str
    sources: Sequence[str]
    targets: Sequence[str]
    gold: Sequence[Set[Link]] | None = None


def measure(translator: Translator, pairs: Measured, treebank: Iterable[ParsedSentence] | None = None) -> Measures:
    """Measure a translator over the first pairs that it has room for, and over sentences of a treebank.

    Raises RunError for a model without attention, DataError where no pair or no sentence fits.
    """
    kinds = attention_kinds(translator.model)
    if not kinds:
        raise RunError("this model has no attention to measure")
    kept = _fitting(translator, pairs)
    found = Measures(
        name=pairs.name,
        sentences=len(kept.sources),
        explained=min(EXPLAINED, len(kept.sources)),
        heads={kind: measure_heads(_attended(translator, kept, kind), causal=is_causal(kind)) for kind in kinds},
        importance=_importance(translator, kept, kinds),
    )
    _follow(translator, kept, found)
    _read_layers(translator, kept, found)
    if CROSS in kinds:
        _explain(translator, kept, found)
    else:
        found.notes.append("no cross-attention: nothing is said of alignments, and no attention to explain anything by")
    if CROSS in kinds and kept.gold is not None:
        words = word_attention(translator, kept.sources, kept.targets)
        found.alignment = error_rates(words, kept.gold).tolist()
    elif CROSS in kinds:
        found.notes.append("no gold alignments of these pairs: no error rates")
    if treebank is not None:
        _relate(translator, treebank, found)
    return found


def _fitting(translator: Translator, pairs: Measured) -> Measured:
    """The first pairs that are not blank and that the model has room for."""
    first, tokenizers = slice(None, 2 * SENTENCES), translator.tokenizers
    read = tokenizers.source.encode_batch(list(pairs.sources[first]))
    written = tokenizers.target.encode_batch(list(pairs.targets[first]))
    lengths = [sorted(map(len, both)) for both in zip(read, written, strict=True)]
    fits = [n for n, (least, most) in enumerate(lengths) if least and most < translator.max_length][:SENTENCES]
    if not fits:
        raise DataError(f"{pairs.name}: none of the first pairs fits {translator.max_length} tokens: give other ones")
    gold = None if pairs.gold is None else [pairs.gold[n] for n in fits]
    return Measured(pairs.name, [pairs.sources[n] for n in fits], [pairs.targets[n] for n in fits], gold)


def _attended(translator: Translator, pairs: Measured, kind: str, most: int | None = None) -> Iterator[Attended]:
    return attended(translator, pairs.sources[:most], pairs.targets[:most], kind)


def _importance(translator: Translator, pairs: Measured, kinds: dict[str, list[str]]) -> dict[str, HeadImportance]:
    passes = []
    for start in range(0, len(pairs.sources), BATCH):
        rows = slice(start, start + BATCH)
        batch = translator.pairs(pairs.sources[rows], pairs.targets[rows])
        passes.append(partial(translator.model, batch.source, batch.target))
    return {kind: head_importance(translator.model, passes, attentions) for kind, attentions in kinds.items()}


def _follow(translator: Translator, pairs: Measured, found: Measures) -> None:
    """Rollout and flow of what attends to itself."""
    for kind in found.heads:
        if "cross" in kind:
            continue
        causal = is_causal(kind)
        rolled = (Attended(rollout(w)[:, None], idle) for w, idle in _attended(translator, pairs, kind))
        found.rollout[kind] = measure_heads(rolled, causal=causal)
        flows = (Attended(flow(w)[None, None], idle) for w, idle in _attended(translator, pairs, kind, FLOWED))
        found.flow[kind] = measure_heads(flows, causal=causal)


def _explain(translator: Translator, pairs: Measured, found: Measures) -> None:
    model = translator.model
    embedding = model.get_submodule("source")
    taus: dict[tuple[int, int, bool], tuple[list[float], list[float]]] = {}
    between: list[float] = []
    crosses = _attended(translator, pairs, CROSS, EXPLAINED)
    has_encoder = ENCODER in found.heads
    owns = _attended(translator, pairs, ENCODER, EXPLAINED) if has_encoder else None
    for source, target, (cross, _) in zip(pairs.sources[:EXPLAINED], pairs.targets[:EXPLAINED], crosses, strict=True):
        batch = translator.pairs([source], [target])
        explained = explain(model, embedding, batch.source[0], batch.target[0])
        between += agreement(explained.gradient, explained.ablation)
        rolled = None if owns is None else rollout(next(owns).weights)[-1]
        for place, weights in _ways(cross, rolled):
            of_gradient, of_ablation = taus.setdefault(place, ([], []))
            of_gradient += agreement(weights, explained.gradient)
            of_ablation += agreement(weights, explained.ablation)
    found.explanations = [Agreement(*place, *map(_mean, both)) for place, both in taus.items()]
    found.gradient_and_ablation = _mean(between)


def _ways(cross: Tensor, rolled: Tensor | None) -> Iterator[tuple[tuple[int, int, bool], Tensor]]:
    """Cross-attention [L, H, T, S] head by head, in the mean, and that followed through the encoder [S, S]."""
    for layer, heads in enumerate(cross.double()):
        for head, weights in enumerate(heads):
            yield (layer, head, False), weights
        yield (layer, MEAN, False), heads.mean(0)
        if rolled is not None:
            yield (layer, MEAN, True), heads.mean(0) @ rolled


def _read_layers(translator: Translator, pairs: Measured, found: Measures) -> None:
    """The logit lens."""
    model, readings = translator.model, []
    for start in range(0, len(pairs.sources), BATCH):
        rows = slice(start, start + BATCH)
        batch = translator.pairs(pairs.sources[rows], pairs.targets[rows])
        run = partial(model.scores, batch.source, batch.target[:, :-1])
        try:
            readings.append(logit_lens(model, run, batch.target[:, 1:]))
        except ValueError as error:
            found.notes.append(f"no logit lens: {error}")
            return
    ranks, probabilities, divergences = (
        torch.cat([getattr(reading, name) for reading in readings], 1).double()
        for name in ("rank", "probability", "divergence")
    )
    found.lens = [
        LensLayer(n, float((rank == 1).double().mean()), float(rank.median()), float(p.mean()), float(d.mean()))
        for n, (rank, p, d) in enumerate(zip(ranks, probabilities, divergences, strict=True))
    ]


def _relate(translator: Translator, treebank: Iterable[ParsedSentence], found: Measures) -> None:
    if ENCODER not in found.heads:
        found.notes.append("no self-attention of the encoder to hold to the treebank")
        return
    found.relations = relation_scores(between_words(translator, islice(treebank, PARSED)))
    if not found.relations:
        raise DataError("the treebank has too few sentences that fit the model, or no relation in them: give more")


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        return None
    return value
