import math

import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.attention.local_predictive import LocalPredictiveConfig

WINDOW = 3


def build():
    torch.manual_seed(0)
    return LocalPredictiveConfig(window=WINDOW).build(num_heads=2, head_size=8).double()


def weights_by_hand(attention, q, k, first, length):
    """Luong et al. 2015, section 3.2, of one sentence whose `length` tokens begin at `first`, pair by pair."""
    found = torch.zeros(*q.shape[:2], k.shape[1], dtype=torch.float64)
    for h in range(q.shape[0]):
        for i in range(q.shape[1]):
            share = torch.sigmoid(torch.tanh(q[h, i] @ attention.hidden[h]) @ attention.place[h, :, 0]).item()
            place = first + share * (length - 1)
            near = [j for j in range(first, first + length) if abs(j - place) <= WINDOW]
            raw = [float(q[h, i] @ k[h, j]) - (j - place) ** 2 / (2 * (WINDOW / 2) ** 2) for j in near]
            total = sum(math.exp(score) for score in raw)
            for j, score in zip(near, raw, strict=True):
                found[h, i, j] = math.exp(score) / total
    return found


def test_it_is_the_formula_of_the_paper_pair_by_pair(draw):
    q, k, _ = draw(12)
    attention = build()
    weights = attention.weights(q, k)
    for b in range(2):
        assert_close(weights[b], weights_by_hand(attention, q[b], k[b], 0, 12))
    assert 0 < (weights == 0).double().mean() < 1


def test_a_place_is_a_share_of_what_is_no_padding(draw):
    q, k, _ = draw(12)
    real = torch.zeros(2, 12).bool()
    real[0, :7] = real[1, 4:] = True
    attention = build()
    weights = attention.weights(q, k, View(keys=real))
    for b, (first, length) in enumerate([(0, 7), (4, 8)]):
        assert_close(weights[b], weights_by_hand(attention, q[b], k[b], first, length))


def test_a_key_masked_between_others_moves_no_window(draw):
    q, k, _ = draw(12)
    real = torch.ones(2, 12).bool()
    real[:, 5] = False
    attention = build()
    weights = attention.weights(q, k, View(keys=real))
    rest = attention.weights(q, k).masked_fill(~real[:, None, None], 0)
    assert_close(weights, rest / rest.sum(-1, keepdim=True))


def test_keys_beyond_the_window_are_masked_and_score_minus_infinity(draw):
    q, k, _ = draw(12)
    attention = build()
    beyond = ~attention.mask(q, k, View())
    assert 0 < beyond.double().mean() < 1
    assert torch.equal(attention.scores(q, k) == -torch.inf, beyond)
    assert torch.equal(attention.weights(q, k) == 0, beyond)


def test_a_query_whose_window_is_masked_mixes_to_zeros_and_gradients_stay_finite(draw):
    q, k, v = (x.requires_grad_() for x in draw(12))
    attention = build()
    with torch.no_grad():
        attention.place.zero_()  # every query predicts 5.5, the middle
    real = torch.ones(2, 12).bool()
    real[0, 1:-1] = False
    mixed = attention(q, k, v, View(keys=real))
    assert not mixed[0].any() and mixed[1].all()
    gradients = torch.autograd.grad(mixed.square().sum(), [q, k, v, *attention.parameters()])
    assert all(one.isfinite().all() for one in gradients)
    assert not any(one[0].any() for one in gradients[:3])
