import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.attention.location import LocationConfig


def build(max_length=9):
    return LocationConfig(max_length=max_length).build(num_heads=2, head_size=8).double()


def test_it_is_the_formula_of_the_paper_pair_by_pair(draw):
    """Luong et al. 2015, section 3.1: a_t = softmax(W h_t), whose s-th number is of the s-th key."""
    q, k, _ = draw(5)
    attention = build()
    scores = torch.empty(2, 2, 5, 5, dtype=torch.float64)
    for b, h, i, j in torch.cartesian_prod(*(torch.arange(n) for n in scores.shape)).tolist():
        scores[b, h, i, j] = attention.weight[h, j] @ q[b, h, i]
    assert_close(attention.weights(q, k), torch.softmax(scores, -1))


def test_what_the_keys_hold_does_not_count(draw):
    q, k, _ = draw(5)
    attention = build()
    assert torch.equal(attention.weights(q, k), attention.weights(q, -3 * k))


def test_more_keys_than_it_was_built_for_are_refused(draw):
    with pytest.raises(
        ValueError, match=r"^Location was built for 9 keys and got 10: raise its max_length and train anew$"
    ):
        build()(*draw(10))


@pytest.mark.parametrize("name", ["query_positions", "key_positions"])
def test_keys_that_stand_elsewhere_than_they_come_are_refused(draw, name):
    with pytest.raises(
        ValueError, match=rf"^Location cannot honour view\.{name}; it honours bias, causal, keys, pairs:"
    ):
        build()(*draw(5), View(**{name: torch.arange(5).flip(0)}))
