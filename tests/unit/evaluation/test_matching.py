"""Retrieval of partners against loops over all pairs."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regardant.evaluation import matching
from regardant.evaluation.matching import classify, score_matches

UNLABELLED = np.full(6, -1)

NUMBERS = np.array([[0, 0], [1, 1], [1, 2], [2, 1], [3, 3], [4, 4]])
"""Six pairs of five first and five second items: item 1 has two partners on either side."""

LABELS = np.array([0, 1, 1, 1, 0, 2])


def vectors_of(numbers, seed=0):
    """Random vectors [N, 2, 3], equal for equal items."""
    generator = torch.Generator().manual_seed(seed)
    sides = [torch.randn(int(side.max()) + 1, 3, generator=generator)[torch.from_numpy(side)] for side in numbers.T]
    return torch.stack(sides, 1)


def expected(vectors, numbers, labels):
    """Return recall@1, recall@5, mean rank and recall@1 by class of the first items, by the definitions."""
    ranks, by_class = [], []
    for query in sorted(set(numbers[:, 0])):
        own = numbers[:, 0] == query
        similarity = {}
        for pair, number in enumerate(numbers[:, 1]):
            similarity[number] = float(F.cosine_similarity(vectors[own][0, 0], vectors[pair, 1], dim=0))
        partners = set(numbers[own, 1])
        best = max(similarity[one] for one in partners)
        ranks.append(1 + sum(value >= best for one, value in similarity.items() if one not in partners))
        found = max(similarity, key=similarity.__getitem__)
        by_class.append(bool(set(labels[own]) & set(labels[numbers[:, 1] == found])))
    ranks = np.array(ranks)
    return [(ranks == 1).mean(), (ranks <= 5).mean(), ranks.mean(), np.mean(by_class)]


@pytest.mark.parametrize("seed", range(5))
def test_ranks_are_those_of_the_definitions_in_both_directions(seed):
    numbers = np.concatenate([NUMBERS, NUMBERS + 5])
    labels = np.concatenate([LABELS, LABELS])
    vectors = vectors_of(numbers, seed)
    found = score_matches(vectors, numbers, labels)
    names = ("recall_at_1", "recall_at_5", "mean_rank", "class_recall_at_1")
    for prefix, side in (("", slice(None)), ("reverse_", slice(None, None, -1))):
        given = [getattr(found, prefix + name) for name in names]
        assert given == pytest.approx(expected(vectors[:, [0, 1][side]], numbers[:, side], labels))
    assert (found.items, found.first_items, found.second_items) == (12, 10, 10)


def test_equal_vectors_find_no_partner():
    numbers = np.arange(8)[:, None].repeat(2, 1)
    found = score_matches(torch.ones(8, 2, 3), numbers, np.full(8, -1))
    assert (found.recall_at_1, found.recall_at_5, found.mean_rank, found.reverse_mean_rank) == (0, 0, 8, 8)


def test_vectors_that_are_no_numbers_find_no_partner():
    numbers, vectors = np.arange(8)[:, None].repeat(2, 1), torch.eye(8)[:, None].repeat(1, 2, 1)
    assert score_matches(vectors, numbers, np.full(8, -1)).recall_at_1 == 1
    vectors[0, 0] = torch.nan
    found = score_matches(vectors, numbers, np.full(8, -1))
    assert (found.recall_at_1, found.reverse_recall_at_1) == (7 / 8, 0)  # in reverse, each may be nearer to it
    found = score_matches(torch.full((8, 2, 3), torch.nan), numbers, np.full(8, -1))
    assert (found.recall_at_1, found.recall_at_5, found.mean_rank) == (0, 0, 8)


def test_the_length_of_a_vector_makes_no_difference():
    vectors = vectors_of(NUMBERS)
    scaled = vectors * torch.rand(6, 2, 1).add(0.1)
    assert score_matches(scaled, NUMBERS, LABELS).as_dict() == score_matches(vectors, NUMBERS, LABELS).as_dict()


def test_many_queries_are_ranked_in_parts(monkeypatch):
    whole = score_matches(vectors_of(NUMBERS), NUMBERS, LABELS)
    monkeypatch.setattr(matching, "QUERIES_AT_ONCE", 2)
    assert score_matches(vectors_of(NUMBERS), NUMBERS, LABELS) == whole


def test_pairs_without_labels_have_no_scores_by_class():
    found = score_matches(vectors_of(NUMBERS), NUMBERS, UNLABELLED).as_dict()
    assert found["recall_at_1"] <= found["recall_at_5"] and "class_recall_at_1" not in found


def test_a_vector_is_classified_by_the_prompt_of_its_direction():
    prompts = torch.tensor([[100.0, 0.0], [0.0, 0.1], [-1.0, -1.0]])
    assert classify(torch.tensor([[0.1, 9.0], [2.0, 1.0], [-3.0, -2.0]]), prompts).tolist() == [1, 0, 2]
