import pytest
import torch
from torch.testing import assert_close

from regardant.attention.softmax import VECTOR, softmax, softmax_backward

lengths = pytest.mark.parametrize("length", [1, 2, VECTOR - 1, VECTOR, VECTOR + 1])


def scores_of(length):
    """Scores of both signs up to hundreds, with a masked key where there is another."""
    scores = torch.randn(3, 2, 5, length, dtype=torch.float64, generator=torch.Generator().manual_seed(length)) * 100
    scores[..., 1:2] = -torch.inf
    return scores


@lengths
def test_rows_of_every_length_equal_torch(length):
    scores = scores_of(length)
    weights = softmax(scores)
    assert_close(weights, torch.softmax(scores, -1))
    assert (weights[..., 1:2] == 0).all()


@lengths
def test_the_gradient_of_rows_of_every_length_is_that_of_autograd(length):
    scores = scores_of(length).requires_grad_()
    weights = torch.softmax(scores, -1)
    gradient = torch.randn_like(weights)
    assert_close(softmax_backward(gradient, weights.detach()), torch.autograd.grad(weights, scores, gradient)[0])


def test_no_keys_have_no_weights():
    assert softmax(torch.ones(2, 3, 0)).shape == (2, 3, 0)
