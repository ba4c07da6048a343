"""Heads that follow grammatical relations: attention between words compared with a treebank.

A head predicts the governor of a dependent in one of two ways: the other word to which the dependent gives most weight,
or the other word that gives most weight to the dependent. For each relation, the best head and way are chosen on every
other sentence and scored on the rest. The baseline, the best fixed offset, is chosen and scored on the same sentences;
a head that always attends to one neighbour reaches no more (Voita et al. 2019, https://arxiv.org/abs/1905.09418,
section 5.2; Clark et al. 2019, https://arxiv.org/abs/1906.04341, section 4.2, who choose and score on the same
sentences).

Shape legend: L layers, H heads, V words.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from regardant.data.treebank import ROOT, ParsedSentence

Direction = Literal["dependent to governor", "governor to dependent"]

WAYS: tuple[Direction, ...] = ("dependent to governor", "governor to dependent")
"""Ways to predict a governor: from the weights of the dependent's query, or from the weights on the dependent's key."""


NO_WORD = -1
"""Predicted governor of a word where a head gives no other word any weight: never right."""


@dataclass(frozen=True)
class RelationScore:
    """Accuracy of one head on one grammatical relation."""

    relation: str
    """Name of the relation in the treebank: nsubj, obj, det, ..."""
    count: int
    """Number of dependents that were scored."""
    layer: int
    head: int
    way: Direction
    accuracy: float
    """Share of dependents whose governor the head predicts."""
    offset: int
    """Most frequent distance from a dependent to its governor, in words; negative if the governor comes first."""
    baseline: float
    """Share of dependents whose governor is at `offset`."""


@dataclass
class _Tally:
    """Counts of a relation in one half of the sentences."""

    right: Tensor = field(default_factory=lambda: torch.zeros(()))
    """[ways, L, H] number of dependents whose governor is predicted."""
    offsets: Counter[int] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        return self.offsets.total()


def relation_scores(sentences: Iterable[tuple[ParsedSentence, Tensor]]) -> list[RelationScore]:
    """Return the best head of each relation, given sentences with attention between their words [L, H, V, V].

    Relations that do not occur in both halves are left out; the most frequent come first.
    """
    halves: tuple[dict[str, _Tally], dict[str, _Tally]] = defaultdict(_Tally), defaultdict(_Tally)
    for number, (sentence, weights) in enumerate(sentences):
        _count(sentence, weights, halves[number % 2])
    chosen_on, scored_on = halves
    scores = [_score(name, chosen_on[name], scored_on[name]) for name in chosen_on if name in scored_on]
    return sorted(scores, key=lambda score: (-score.count, score.relation))


def _count(sentence: ParsedSentence, weights: Tensor, tallies: dict[str, _Tally]) -> None:
    own = torch.eye(weights.shape[-1], dtype=torch.bool)
    others = weights.masked_fill(own, -1)  # no word governs itself
    best = [others.max(dim) for dim in (-1, -2)]
    # Without weight on another word, the largest of the zeros would name the first word.
    named = torch.stack([one.indices.masked_fill(one.values <= 0, NO_WORD) for one in best])  # [ways, L, H, V]
    has_tokens = weights.sum((0, 1, 2)) + weights.sum((0, 1, 3)) > 0
    for word, (governor, relation) in enumerate(zip(sentence.governors, sentence.relations, strict=True)):
        if governor == ROOT or not (has_tokens[word] and has_tokens[governor]):
            continue
        tally = tallies[relation]
        tally.right = tally.right + (named[..., word] == governor)
        tally.offsets[governor - word] += 1


def _score(relation: str, chosen_on: _Tally, scored_on: _Tally) -> RelationScore:
    way, layer, head = (int(index) for index in torch.unravel_index(chosen_on.right.argmax(), chosen_on.right.shape))
    ((offset, _),) = chosen_on.offsets.most_common(1)
    count = scored_on.count
    return RelationScore(
        relation=relation,
        count=count,
        layer=layer,
        head=head,
        way=WAYS[way],
        accuracy=float(scored_on.right[way, layer, head]) / count,
        offset=offset,
        baseline=scored_on.offsets[offset] / count,
    )
