import torch
from torch.testing import assert_close

from regardant.attention.general import GeneralConfig


def test_it_is_the_formula_of_the_paper_pair_by_pair(draw):
    """Luong et al. 2015, section 3.1: softmax(h_t W h_s), unscaled."""
    q, k, _ = draw(5)
    attention = GeneralConfig().build(num_heads=2, head_size=8).double()
    scores = torch.empty(2, 2, 5, 5, dtype=torch.float64)
    for b, h, i, j in torch.cartesian_prod(*(torch.arange(n) for n in scores.shape)).tolist():
        scores[b, h, i, j] = sum(
            q[b, h, i, x] * attention.weight[h, x, y] * k[b, h, j, y] for x in range(8) for y in range(8)
        )
    assert_close(attention.weights(q, k), torch.softmax(scores, -1))
