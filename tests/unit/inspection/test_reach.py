import pytest
import torch
from torch import nn

from regardant.attention import EVERYTHING, ScaledDotProductConfig, View
from regardant.inspection.induction import induction_scores
from regardant.inspection.reach import equivariance_error, invariance_error, reached
from regardant.layers.feed_forward import LinearFeedForward
from regardant.layers.multi_head import HeadShape, SelfAttention
from regardant.positions.none import NoPositions

X, ORDER = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(0)), torch.tensor([3, 0, 5, 1, 4, 2])


def attention(*, causal=False):
    torch.manual_seed(0)
    return SelfAttention(HeadShape(8, 2, 2, 4, 4), ScaledDotProductConfig(), NoPositions(), causal=causal)


def test_a_position_depends_on_what_it_may_attend_to():
    layer = attention(causal=True)
    assert reached(lambda x: layer(x, View(causal=True)), X, 2).tolist() == [True] * 3 + [False] * 3
    assert reached(lambda x: layer(x, EVERYTHING), X, 2).all()
    assert reached(LinearFeedForward(8, 16, 0.0), X, 2).tolist() == [False, False, True, False, False, False]


def test_self_attention_is_equivariant_and_not_invariant():
    layer = attention()
    assert equivariance_error(lambda x: layer(x, EVERYTHING), X, ORDER) < 1e-5
    assert invariance_error(lambda x: layer(x, EVERYTHING), X, ORDER) > 0.1


def test_a_mean_is_invariant_and_a_convolution_is_neither():
    assert invariance_error(lambda x: x.mean(1, keepdim=True), X, ORDER) < 1e-6
    convolution = nn.Conv1d(8, 8, 3, padding=1)
    found = equivariance_error(lambda x: convolution(x.mT).mT, X, ORDER)
    assert found > 0.1


def test_a_head_that_looks_at_what_followed_is_an_induction_head():
    text = torch.tensor([[5, 7, 6, 5, 7, 9]])
    weights = torch.zeros(1, 2, 6, 6)
    weights[0, 0, 3, 1] = weights[0, 0, 4, 2] = 1.0  # after the 5 at place 0 and after the 7 at place 1
    weights[0, 1, 3, 0] = weights[0, 1, 4, 1] = 1.0  # the occurrence itself
    assert induction_scores(weights, text).tolist() == [1, 0]


def test_a_token_that_repeats_the_one_before_it_is_left_out():
    text = torch.tensor([[5, 5, 7, 5, 5]])
    weights = torch.zeros(1, 2, 5, 5)
    weights[0, 0, 3, 2] = 1.0  # after the 5 at place 1; the 5 at places 1 and 4 follow a 5
    weights[0, 1, [1, 4], [1, 4]] = 1.0  # the query itself
    assert induction_scores(weights, text).tolist() == [1, 0]


@pytest.mark.parametrize("text", [[1, 2, 3], [1, 1, 2]])
def test_a_text_without_a_repetition_has_no_induction(text):
    with pytest.raises(ValueError, match="no token occurs twice with another one between"):
        induction_scores(torch.ones(1, 1, 3, 3), torch.tensor([text]))
