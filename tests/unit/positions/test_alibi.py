import torch
from torch.testing import assert_close

from regardant.positions.alibi import AlibiConfig


def bias(num_heads, queries, keys):
    return (
        AlibiConfig().build(d_model=8, num_heads=num_heads, head_size=4, max_length=9, causal=True).bias(queries, keys)
    )


def test_it_is_the_formula_of_the_paper_pair_by_pair():
    """Press et al. 2022, section 3: -m |i - j|, the slopes of eight heads from 1/2 to 1/256, each half the last."""
    slopes, at = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256], torch.arange(6)
    expected = [[[-slope * abs(i - j) for j in range(6)] for i in range(6)] for slope in slopes]
    assert_close(bias(8, at, at), torch.tensor(expected))


def test_other_numbers_of_heads_span_the_same_slopes():
    for num_heads in (1, 3, 12):
        slopes = -bias(num_heads, torch.tensor([1]), torch.tensor([0])).flatten()
        assert_close(slopes, torch.tensor([2 ** (-8 * h / num_heads) for h in range(1, num_heads + 1)]))


def test_far_keys_score_less_and_those_behind_as_those_before():
    scores = bias(4, torch.tensor([5]), torch.arange(11))[:, 0]
    assert (scores[:, :5].diff() > 0).all() and (scores[:, 5] == 0).all()
    assert_close(scores, scores.flip(1))
