"""Retrieval scores of a model that matches items of two kinds by the cosine of their vectors.

Every distinct item is a query once, and a candidate once. The rank of a query is one more than the number of wrong
candidates at least as similar to it as its most similar partner, so that a model whose vectors are all equal gains
nothing.

Shape legend: N pairs, Q queries, C candidates, P prompts, M size of a vector.
"""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

QUERIES_AT_ONCE = 1024
"""Number of queries whose similarities to all candidates are in memory at once."""


@dataclass(frozen=True)
class MatchingScores:
    """Scores of retrieval of second items by first items; with `reverse`, of first items by second items."""

    recall_at_1: float
    """Share of queries with a partner as the most similar candidate."""
    recall_at_5: float
    """Share of queries with a partner among the five most similar candidates."""
    mean_rank: float
    """Mean rank of the most similar partner, from 1."""
    reverse_recall_at_1: float
    reverse_recall_at_5: float
    reverse_mean_rank: float
    class_recall_at_1: float | None
    """Share of queries whose most similar candidate has the class of the query. None: the pairs have no classes."""
    reverse_class_recall_at_1: float | None
    items: int
    """Number of pairs."""
    first_items: int
    """Number of distinct first items."""
    second_items: int
    """Number of distinct second items."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json, without scores that these pairs lack."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Ranking(NamedTuple):
    """Candidates found for each query."""

    ranks: Tensor
    """[Q]: rank of each query, from 1."""
    best: Tensor
    """[Q]: index of the most similar candidate."""

    def recall(self, count: int) -> float:
        """Return the share of queries with a partner among the `count` most similar candidates."""
        return float((self.ranks <= count).double().mean())


def score_matches(vectors: Tensor, numbers: NDArray[np.int64], labels: NDArray[np.int64]) -> MatchingScores:
    """Score the vectors of pairs.

    Args:
        vectors: [N, 2, M] of the first and the second item of each pair.
        numbers: [N, 2] index of each item among the distinct items of its kind.
        labels: [N] class of each pair, below zero where pairs have no classes.
    """
    unit = F.normalize(vectors.float(), dim=-1)
    first, second = (_distinct(unit[:, side], numbers[:, side]) for side in (0, 1))
    forward, reverse = rank(*first, *second), rank(*second, *first)
    of_first, of_second = (_classes(places, labels) for _, places in (first, second))
    labelled = bool((labels >= 0).all())
    return MatchingScores(
        recall_at_1=forward.recall(1),
        recall_at_5=forward.recall(5),
        mean_rank=float(forward.ranks.double().mean()),
        reverse_recall_at_1=reverse.recall(1),
        reverse_recall_at_5=reverse.recall(5),
        reverse_mean_rank=float(reverse.ranks.double().mean()),
        class_recall_at_1=_class_recall(of_first, of_second, forward) if labelled else None,
        reverse_class_recall_at_1=_class_recall(of_second, of_first, reverse) if labelled else None,
        items=len(labels),
        first_items=len(first[0]),
        second_items=len(second[0]),
    )


def rank(queries: Tensor, of_query: Tensor, candidates: Tensor, of_candidate: Tensor) -> Ranking:
    """Rank candidates [C, M] for each of the queries [Q, M], all of them unit vectors.

    Pair n is query `of_query[n]` with candidate `of_candidate[n]`, [N] each.
    """
    ranks, best = [], []
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        similarity = queries[start : start + QUERIES_AT_ONCE] @ candidates.T
        own = (of_query >= start) & (of_query < start + len(similarity))
        partners = torch.zeros_like(similarity, dtype=torch.bool)
        partners[of_query[own] - start, of_candidate[own]] = True
        nearest = similarity.masked_fill(~partners, -torch.inf).amax(1, keepdim=True)
        # Not `>=`, which is false of NaN: a vector of NaN would come first.
        ranks.append((~(similarity < nearest) & ~partners).sum(1) + 1)
        best.append(similarity.argmax(1))
    return Ranking(torch.cat(ranks), torch.cat(best))


def classify(vectors: Tensor, prompts: Tensor) -> NDArray[np.int64]:
    """Return the index of the most similar prompt [N] for vectors [N, M] and prompts [P, M] (Radford et al. 2021,
    section 3.1.2: zero-shot classification)."""
    found: NDArray[np.int64] = (F.normalize(vectors, dim=-1) @ F.normalize(prompts, dim=-1).T).argmax(1).numpy()
    return found


def _distinct(vectors: Tensor, numbers: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """Return the vectors of distinct items, and the index [N] of each pair's item among them."""
    _, first, places = np.unique(numbers, return_index=True, return_inverse=True)
    return vectors[torch.from_numpy(first)], torch.from_numpy(places)


def _classes(places: Tensor, labels: NDArray[np.int64]) -> Tensor:
    """Return a mask [Q, classes] of the classes of each distinct item; a label below zero is no class."""
    classes = torch.zeros(int(places.max()) + 1, int(labels.max()) + 1, dtype=torch.bool)
    known = torch.from_numpy(labels >= 0)
    classes[places[known], torch.from_numpy(labels)[known]] = True
    return classes


def _class_recall(queries: Tensor, candidates: Tensor, ranking: Ranking) -> float:
    return float((queries & candidates[ranking.best]).any(1).double().mean())
