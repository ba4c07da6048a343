from itertools import combinations

import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.attention.entmax import EntmaxConfig


def entmax(scores, alpha):
    return EntmaxConfig(alpha=alpha).build(num_heads=1, head_size=1).normalise(scores[None, None])[0, 0]


def rows(count=40, size=5, spread=1.0):
    return spread * torch.randn(count, size, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def nearest_point_of_the_simplex(score):
    """By trying every support: on each the nearest point of its plane, if it has no negative number."""
    found = []
    for size in range(1, len(score) + 1):
        for support in combinations(range(len(score)), size):
            point, chosen = torch.zeros_like(score), list(support)
            point[chosen] = score[chosen] - (score[chosen].sum() - 1) / size
            if (point >= 0).all():
                found.append(point)
    return min(found, key=lambda point: float((point - score).norm()))


def by_bisection(score, alpha):
    """p = ((alpha - 1) score - t)_+ ^ (1 / (alpha - 1)) with the t for which p sums to one."""
    score = (alpha - 1) * score
    low, high = score.max() - 1, score.max()
    for _ in range(100):
        middle = (low + high) / 2
        total = ((score - middle).clamp_min(0) ** (1 / (alpha - 1))).sum()
        low, high = (middle, high) if total > 1 else (low, middle)
    return (score - low).clamp_min(0) ** (1 / (alpha - 1))


@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0])
def test_alpha_2_is_the_nearest_point_of_the_simplex(spread):
    scores = rows(spread=spread)
    assert_close(entmax(scores, 2.0), torch.stack([nearest_point_of_the_simplex(score) for score in scores]))


@pytest.mark.parametrize("alpha", [1.5, 2.0])
@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0, 100.0])
def test_the_threshold_is_the_one_that_bisection_finds(alpha, spread):
    scores = rows(size=30, spread=spread)
    found = torch.stack([by_bisection(score, alpha) for score in scores])
    assert_close(entmax(scores, alpha), found, rtol=0, atol=1e-9)


def test_alpha_1_5_lies_between_the_softmax_and_the_projection():
    scores = rows(size=20)
    kept = [(weights > 0).sum(-1).double().mean() for weights in (entmax(scores, 2.0), entmax(scores, 1.5))]
    assert kept[0] < kept[1] < 20


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_a_constant_added_to_all_scores_changes_nothing(alpha):
    scores = rows()
    assert_close(entmax(scores + 1000, alpha), entmax(scores, alpha), rtol=0, atol=1e-9)


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_hidden_keys_are_as_if_they_were_not_there(alpha):
    scores = rows()
    hidden = torch.cat([scores, torch.full((len(scores), 3), -torch.inf).double()], -1)
    assert_close(entmax(hidden, alpha), torch.cat([entmax(scores, alpha), torch.zeros(len(scores), 3).double()], -1))


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_keys_that_tie_weigh_the_same(alpha):
    weights = entmax(torch.tensor([[1.0, 1.0, 1.0, -3.0]]), alpha)
    assert_close(weights, torch.tensor([[1 / 3, 1 / 3, 1 / 3, 0]]))


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_scores_and_values_both_learn(draw, alpha):
    q, k, v = (x.requires_grad_() for x in draw(6))
    attention = EntmaxConfig(alpha=alpha).build(num_heads=2, head_size=8)
    assert torch.autograd.gradcheck(lambda *x: attention(*x, View(causal=True)), (q, k, v), fast_mode=True)
