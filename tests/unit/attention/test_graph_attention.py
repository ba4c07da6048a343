import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regardant.attention.graph_attention import GraphAttentionConfig
from regardant.attention.masks import View


def build():
    torch.manual_seed(0)
    return GraphAttentionConfig().build(num_heads=2, head_size=8).double()


def test_it_is_the_formula_of_the_paper_pair_by_pair(draw):
    """Veličković et al. 2018, eq. 3: softmax(LeakyReLU(a . [q || k])), slope 0.2."""
    q, k, _ = draw(5)
    attention = build()
    both = torch.cat([attention.of_query, attention.of_key], -1)
    scores = torch.empty(2, 2, 5, 5, dtype=torch.float64)
    for b, h, i, j in torch.cartesian_prod(*(torch.arange(n) for n in scores.shape)).tolist():
        scores[b, h, i, j] = F.leaky_relu(both[h] @ torch.cat([q[b, h, i], k[b, h, j]]), 0.2)
    assert_close(attention.weights(q, k), torch.softmax(scores, -1))


def test_all_queries_rank_the_keys_alike(draw):
    """Brody et al. 2022, theorem 1."""
    q, k, _ = draw(5)
    order = build().weights(q, k).argsort(-1)
    assert torch.equal(order, order[:, :, :1].expand_as(order))


def test_along_edges_it_is_the_same_as_by_a_whole_matrix(draw):
    q, k, v = (x[:1].float() for x in draw(40))
    pairs = torch.eye(40, dtype=torch.bool)[None, None]
    pairs[0, 0, torch.arange(39), torch.arange(1, 40)] = True
    attention, view = build().float(), View(pairs=pairs)
    assert view.listed_pairs(q, k) is not None
    assert_close(attention.mix(q, k, v, view), attention.weights(q, k, view) @ v)
