import math

import pytest
import torch
from torch.testing import assert_close

from regardant.attention import KERNELS, ScaledDotProduct, ScaledDotProductConfig, View

# Six words of four numbers, and what a query takes from them by hand.
QUERY = [0.9, 0.1, 0.2, 0.3]
KEYS = [[0, 0, 0, 1], [1, 0, 0.3, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
VALUES = [[0.1, 0, 0, 0.8], [0.9, 0, 0.1, 0.7], [0, 0.9, 0, 0.3], [0, 0, 0.5, 0], [0, 0, 0, 0.9], [0, 0, 0.9, 0.6]]
WEIGHTS = [0.163727, 0.227738, 0.148146, 0.140921, 0.163727, 0.155742]
MIXED = [0.221337, 0.133331, 0.233402, 0.575641]


def test_the_weights_of_the_worked_example_come_out_to_six_digits():
    q, k = torch.tensor([[[QUERY]]]), torch.tensor([[KEYS]])
    weights = ScaledDotProductConfig().build(num_heads=1, head_size=4).weights(q, k)
    assert_close(weights[0, 0, 0], torch.tensor(WEIGHTS), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_mix_of_the_worked_example_comes_out_to_six_digits(kernel):
    attention = ScaledDotProductConfig().build(num_heads=1, head_size=4)
    attention.kernel = KERNELS[kernel]
    mixed = attention(*(torch.tensor([[rows]]) for rows in ([QUERY], KEYS, VALUES)))
    assert_close(mixed[0, 0, 0], torch.tensor(MIXED), rtol=0, atol=1e-6)


def test_scores_are_divided_by_the_root_of_the_head_size():
    attention = ScaledDotProductConfig().build(num_heads=2, head_size=9)
    q, k = torch.zeros(1, 1, 1, 9), torch.zeros(1, 1, 2, 9)
    q[..., 0], k[..., 0, 0] = 3.0, 1.0
    odds = attention.weights(q, k).flatten()
    assert_close(odds[0] / odds[1], torch.tensor(math.e))


def test_it_learns_nothing_of_its_own():
    assert not list(ScaledDotProductConfig().build(num_heads=2, head_size=9).parameters())


KEY_MASK = torch.arange(9) < torch.tensor([[9], [4], [0]])
BIASES = torch.randn(3, 6, 4, 9, generator=torch.Generator().manual_seed(1))
VIEWS = {
    "everything": View(),
    "causal": View(causal=True),
    "padded": View(causal=True, keys=KEY_MASK),
    "a bias of each head": View(bias=lambda queries, keys: BIASES[0]),
    "a bias of each sentence": View(keys=KEY_MASK, bias=lambda queries, keys: BIASES[:, :1]),
    "positions": View(causal=True, query_positions=torch.tensor([5, 0, 8, 3])),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("key_heads", [1, 2, 3])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_query_heads_that_share_keys_mix_as_with_keys_of_their_own(view, key_heads, dtype):
    generator = torch.Generator().manual_seed(0)
    sizes = [(6, 4, 8), (key_heads, 9, 8), (key_heads, 9, 5)]
    q, k, v = (torch.randn(3, *size, generator=generator).to(dtype) for size in sizes)
    attention = ScaledDotProductConfig().build(num_heads=6, head_size=8)
    own = attention(q, *(x.repeat_interleave(6 // key_heads, 1) for x in (k, v)), view)
    with torch.no_grad():
        shared = attention(q, k, v, view)
    assert shared.dtype == dtype
    assert_close(shared, own)


def test_a_subclass_with_a_mix_of_its_own_is_asked():
    class Doubled(ScaledDotProduct):
        def mix(self, q, k, v, view):
            assert k.shape[1] == q.shape[1]
            return 2 * super().mix(q, k, v, view)

    q, k = torch.randn(1, 4, 1, 8), torch.randn(1, 2, 5, 8)
    with torch.no_grad():
        assert_close(Doubled(8)(q, k, k), 2 * ScaledDotProduct(8)(q, k, k))


def test_training_by_matmul_keeps_one_matrix_of_pairs():
    attention = ScaledDotProductConfig().build(num_heads=2, head_size=4)
    attention.kernel = KERNELS["matmul"]
    q, k, v = torch.randn(3, 1, 2, 9, 4, requires_grad=True).unbind()
    bias = torch.randn(1, 2, 9, 9, requires_grad=True)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.shape[-2:]) or x, lambda x: x):
        mixed = attention.mix(q, k, v, View(bias=lambda queries, keys: bias))
    mixed.sum().backward()
    assert kept.count((9, 9)) == 1 and bias.grad.abs().sum() > 0
