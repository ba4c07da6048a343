from typing import ClassVar

import pytest
import torch
from jaxtyping import TypeCheckError
from torch.testing import assert_close

from regardant.attention import Attention, AttentionConfig, View
from regardant.attention.general import GeneralConfig
from regardant.attention.interface import expand_heads, multiply_heads
from regardant.attention.local_predictive import LocalPredictiveConfig
from regardant.attention.softmax import masked_softmax
from tests.unit.attention.largest_tensor import LargestTensor

Q, K = torch.zeros(2, 4, 3, 8), torch.zeros(2, 4, 5, 8)
REAL = torch.tensor([[True, True, True, True, True], [True, True, False, False, False]])


class Even(Attention):
    """All keys alike: what a mechanism is that writes `weights` alone."""

    def compute_weights(self, q, k, view):
        return masked_softmax(torch.zeros(*q.shape[:3], k.shape[2]), q, k, view)


def test_key_heads_are_repeated_for_their_group():
    k = torch.randn(2, 2, 5, 8)
    assert torch.equal(expand_heads(k, 4), k[:, [0, 0, 1, 1]])
    assert expand_heads(k, 2) is k


def test_the_vectors_of_each_head_are_multiplied_by_its_matrix(draw):
    x, _, _ = draw(3)
    matrices = torch.linspace(-1, 1, 2 * 8 * 5).double().view(2, 8, 5)
    product = multiply_heads(x, matrices)
    for b, h, n in torch.cartesian_prod(*map(torch.arange, product.shape[:3])).tolist():
        assert_close(product[b, h, n], x[b, h, n] @ matrices[h])


@pytest.mark.parametrize("config", [GeneralConfig(), LocalPredictiveConfig()], ids=lambda config: config.kind)
def test_a_matrix_of_each_head_has_one_gradient_for_all_sentences(config):
    """A step of a recurrent decoder has one query for each of many sentences."""
    q, k, v = torch.randn(100, 2, 1, 32), torch.randn(100, 2, 5, 32), torch.randn(100, 2, 5, 4)
    attention = config.build(num_heads=2, head_size=32)
    matrix = max(attention.parameters(), key=torch.numel)
    with LargestTensor() as largest:
        attention(q, k, v).square().sum().backward()
    assert matrix.grad is not None
    assert largest.numel == k.numel() < len(q) * matrix.numel()  # keys are the largest tensor


def test_a_mechanism_needs_no_more_than_weights():
    v = torch.randn(2, 2, 5, 6)
    attention = Even()
    assert_close(attention(Q, K[:, :2], v), v.mean(2, keepdim=True)[:, [0, 0, 1, 1]].expand(-1, -1, 3, -1))
    assert attention(Q.bfloat16(), K[:, :2].bfloat16(), v.bfloat16()).dtype == torch.bfloat16
    assert attention.redraw() is None


def test_a_mechanism_without_weights_says_so():
    with pytest.raises(NotImplementedError):
        Attention().weights(Q, K)
    with pytest.raises(NotImplementedError):
        AttentionConfig.build(None, num_heads=1, head_size=1)


def test_what_is_refused_is_named_with_what_is_honoured():
    class Narrow(Even):
        honours = frozenset({"keys", "causal"})

    message = r"^Narrow cannot honour view\.bias, view\.pairs; it honours causal, keys: choose another mechanism$"
    with pytest.raises(ValueError, match=message):
        Narrow()(Q, K, K, View(keys=REAL, pairs=torch.ones(1, 1, 3, 5).bool(), bias=lambda q, k: torch.zeros(4, 3, 5)))


def test_a_reason_is_given_where_there_is_one():
    class Narrow(Even):
        honours = frozenset({"keys"})
        why_not: ClassVar = {"causal": "it reads backwards"}

    with pytest.raises(ValueError, match=r"it honours keys: choose another mechanism \(it reads backwards\)$"):
        Narrow()(Q, K, K, View(causal=True, bias=lambda q, k: torch.zeros(4, 3, 5)))
    with pytest.raises(ValueError, match=r"it honours keys: choose another mechanism$"):
        Narrow()(Q, K, K, View(bias=lambda q, k: torch.zeros(4, 3, 5)))


def test_shapes_are_checked_while_testing():
    with pytest.raises(TypeCheckError):
        expand_heads(torch.zeros(2, 5, 8), 4)
