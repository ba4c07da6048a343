import torch
from torch.testing import assert_close

from regardant.attention.additive import AdditiveConfig


def test_it_is_the_formula_of_the_paper_pair_by_pair(draw):
    """Bahdanau et al. 2015, appendix A.1.2: softmax(v . tanh(q + k)) of queries and keys that are projected."""
    q, k, _ = draw(5)
    attention = AdditiveConfig().build(num_heads=2, head_size=8).double()
    scores = torch.empty(2, 2, 5, 5, dtype=torch.float64)
    for b, h, i, j in torch.cartesian_prod(*(torch.arange(n) for n in scores.shape)).tolist():
        scores[b, h, i, j] = attention.weight[h] @ torch.tanh(q[b, h, i] + k[b, h, j])
    assert_close(attention.weights(q, k), torch.softmax(scores, -1))
