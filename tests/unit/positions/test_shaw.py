import torch
from torch.testing import assert_close

from regardant.attention import ScaledDotProductConfig, View
from regardant.positions.shaw import ShawConfig

HEAD_SIZE, LENGTH, MOST = 4, 6, 2


def build():
    torch.manual_seed(0)
    config = ShawConfig(max_distance=MOST)
    return config.build(d_model=8, num_heads=2, head_size=HEAD_SIZE, max_length=LENGTH, causal=False)


def test_it_is_a_key_for_each_distance_added_to_the_key():
    """Shaw et al. 2018, eq. 4: e_ij = q_i . (k_j + a_clip(j - i)) / sqrt(d), pair by pair."""
    scheme, at = build(), torch.arange(LENGTH)
    q, k = torch.randn(2, 1, 2, LENGTH, HEAD_SIZE)
    scores = torch.empty(1, 2, LENGTH, LENGTH)
    for h, i, j in torch.cartesian_prod(torch.arange(2), at, at).tolist():
        distance = min(max(j - i, -MOST), MOST)
        scores[0, h, i, j] = q[0, h, i] @ (k[0, h, j] + scheme.table[distance + MOST]) / HEAD_SIZE**0.5
    attention = ScaledDotProductConfig().build(num_heads=2, head_size=HEAD_SIZE)
    assert_close(attention.weights(q, k, View(bias=scheme.bias_of(q, 0))), torch.softmax(scores, -1))


def test_queries_of_a_later_step_stand_where_they_say():
    scheme, keys = build(), torch.arange(LENGTH)
    q = torch.randn(1, 2, LENGTH, HEAD_SIZE)
    whole = scheme.bias_of(q, 0)(keys, keys)
    assert_close(scheme.bias_of(q[:, :, 4:], 4)(keys[4:], keys), whole[:, :, 4:])
