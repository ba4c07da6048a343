import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant.layers.norms import (
    LayerNormConfig,
    NoNormConfig,
    NormConfig,
    RMSNormConfig,
    SigmaLayerNorm,
    SigmaLayerNormConfig,
)

NUMBERS = torch.tensor([1.0, 2.0, 3.0, 4.0])


def test_the_two_forms_of_epsilon_differ_where_the_deviation_is_small():
    inside, beside = LayerNormConfig().build(4), SigmaLayerNormConfig().build(4)
    assert isinstance(inside, nn.LayerNorm) and isinstance(beside, SigmaLayerNorm)
    assert_close(inside(NUMBERS), beside(NUMBERS), rtol=0, atol=1e-5)
    small = NUMBERS * 1e-3 / NUMBERS.std(unbiased=False)
    ratio = beside(small) / inside(small)
    # sqrt(1e-6 + 1e-5) / (1e-3 + 1e-5)
    assert_close(ratio, torch.full((4,), 3.2838), rtol=1e-3, atol=0)


def test_epsilon_beside_the_deviation_is_as_written():
    deviation = NUMBERS.std(unbiased=False)
    assert_close(SigmaLayerNorm(4)(NUMBERS), (NUMBERS - NUMBERS.mean()) / (deviation + 1e-5))


def test_equal_numbers_have_a_finite_gradient():
    x = torch.full((2, 4), 3.0, requires_grad=True)
    SigmaLayerNorm(4)(x).sum().backward()
    assert x.grad.isfinite().all()


def test_root_mean_square_keeps_the_mean():
    assert_close(RMSNormConfig().build(4)(NUMBERS), NUMBERS / NUMBERS.square().mean().sqrt(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", NormConfig.kinds())
def test_each_token_is_by_itself(kind):
    norm, x = NormConfig.kinds()[kind]().build(4), torch.randn(2, 3, 4)
    assert_close(norm(x)[:, 1], norm(x[:, 1]))


def test_without_a_norm_numbers_stay_as_they_are():
    norm = NoNormConfig().build(4)
    assert torch.equal(norm(NUMBERS), NUMBERS) and not list(norm.parameters())
