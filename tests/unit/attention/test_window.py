import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View, masks
from regardant.attention.window import WindowConfig


def build(window, head_size=8):
    return WindowConfig(window=window).build(num_heads=2, head_size=head_size)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [299, 300, 5000])
def test_a_window_over_everything_is_exact_attention(draw, exact, window, causal):
    tensors = draw(300)
    assert_close(build(window)(*tensors, View(causal=causal)), exact(*tensors, View(causal=causal)))


@pytest.mark.parametrize("window", [0, 1, 70, 200])
def test_a_window_is_exact_attention_under_its_mask(draw, exact, window):
    tensors = draw(300)
    assert_close(build(window)(*tensors), exact(*tensors, masks.window(300, window)))


def test_a_window_of_nothing_gives_each_token_its_own_value(draw):
    q, k, v = draw(70)
    assert_close(build(0)(q, k, v), v)


def test_a_query_sees_as_far_as_the_window_and_no_further():
    at = torch.arange(9)
    seen = build(2).pattern(at[4:5], at)[0]
    assert seen.nonzero().flatten().tolist() == [2, 3, 4, 5, 6]


def test_a_query_of_another_sequence_says_where_it_stands(draw):
    q, k, v = draw(9)
    view = View(query_positions=torch.tensor([4]))
    weights = build(2).weights(q[:, :, :1], k, view)
    assert weights[0, 0, 0].nonzero().flatten().tolist() == [2, 3, 4, 5, 6]
    assert_close(build(2)(q[:, :, :1], k, v, view), weights @ v)
