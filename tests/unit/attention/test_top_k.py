import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.attention.hard import HardConfig
from regardant.attention.top_k import TopKConfig


def build(k):
    return TopKConfig(k=k).build(num_heads=2, head_size=8)


@pytest.mark.parametrize("k", [12, 13, 500])
@pytest.mark.parametrize("causal", [False, True])
def test_all_keys_are_the_softmax(draw, exact, k, causal):
    tensors = draw(12)
    assert_close(build(k)(*tensors, View(causal=causal)), exact(*tensors, View(causal=causal)))


def test_one_key_is_hard_attention(draw):
    tensors = draw(12)
    hard = HardConfig().build(num_heads=2, head_size=8)
    for view in (View(), View(causal=True)):
        assert_close(build(1)(*tensors, view), hard(*tensors, view))


def test_the_best_are_kept_and_weigh_as_in_the_softmax(draw):
    q, k, _ = draw(12)
    weights, scores = build(3).weights(q, k), q @ k.mT / 8**0.5
    best = scores.topk(3, -1)
    assert ((weights > 0).sum(-1) == 3).all()
    assert_close(weights.gather(-1, best.indices), torch.softmax(best.values, -1))


def test_keys_that_tie_with_the_last_that_is_kept_are_kept_too():
    scores = torch.tensor([[[[2.0, 1.0, 1.0, 0.0]]]])
    kept = build(2).normalise(scores)
    assert_close(kept, torch.softmax(torch.tensor([[[[2.0, 1.0, 1.0, -torch.inf]]]]), -1))
    assert_close(build(2).normalise(scores.flip(-1)), kept.flip(-1))


def test_fewer_keys_than_k_share_what_there_is(draw):
    q, k, _ = draw(12)
    weights = build(5).weights(q, k, View(causal=True))
    assert_close((weights > 0).sum(-1)[0, 0], torch.arange(1, 13).clamp_max(5))
