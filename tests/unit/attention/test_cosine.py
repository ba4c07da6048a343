import pytest
import torch
from torch.testing import assert_close

from regardant.attention import KERNELS
from regardant.attention.cosine import CosineAttentionConfig


def build():
    attention = CosineAttentionConfig(gain=3.0).build(num_heads=2, head_size=8).double()
    with torch.no_grad():
        attention.gain[1] = 5.0
    return attention


def test_it_is_the_formula_of_the_paper_pair_by_pair(draw):
    """Henry et al. 2020, eq. 5: softmax(g q . k / (|q| |k|)), a g for each head."""
    q, k, _ = draw(5)
    scores = torch.empty(2, 2, 5, 5, dtype=torch.float64)
    for b, h, i, j in torch.cartesian_prod(*(torch.arange(n) for n in scores.shape)).tolist():
        lengths = q[b, h, i].norm() * k[b, h, j].norm()
        scores[b, h, i, j] = (3.0, 5.0)[h] * (q[b, h, i] @ k[b, h, j]) / lengths
    assert_close(build().weights(q, k), torch.softmax(scores, -1))


@pytest.mark.parametrize("kernel", KERNELS)
def test_how_long_queries_and_keys_are_does_not_count(draw, kernel):
    q, k, v = draw(5)
    attention = build()
    attention.kernel = KERNELS[kernel]
    longer = torch.linspace(0.1, 50, 5).double()[:, None]
    assert_close(attention(q * longer, k * longer.flip(0), v), attention(q, k, v))


def test_the_gain_learns(draw):
    attention = build()
    attention(*draw(5)).square().sum().backward()
    assert attention.gain.grad.all()
