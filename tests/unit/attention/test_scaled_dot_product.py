import math

import pytest
import torch
from torch.testing import assert_close

from regardant.attention import KERNELS, ScaledDotProductConfig

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
