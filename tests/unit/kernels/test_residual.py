import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant.layers.norms import LayerNormConfig
from regardant.layers.residual import Residual

from . import interpreted

pytestmark = pytest.mark.xdist_group("kernels")

WIDTH = 40


def inputs():
    generator = torch.Generator().manual_seed(0)
    x, written, gradient = torch.randn(3, 2, 7, WIDTH, generator=generator)
    norm = nn.LayerNorm(WIDTH)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    return x, written, norm, gradient


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_it_computes_the_norm_of_the_sum_and_its_gradients(interpret, rate):
    x, written, norm, gradient = inputs()
    found = interpret(interpreted.residual, x, written, norm, rate, 2**61 + 7, gradient)
    kept = (found[2] != 0) / (1 - rate)  # what is dropped has no gradient
    wide = [one.detach().double().requires_grad_() for one in (x, written, norm.weight, norm.bias)]
    normed = nn.functional.layer_norm(wide[0] + kept * wide[1], (WIDTH,), *wide[2:], norm.eps)
    expected = [normed, *torch.autograd.grad(normed, wide, gradient.double())]
    for mine, right in zip(found, expected, strict=True):
        assert_close(mine.double(), right.detach(), rtol=1e-4, atol=1e-5)  # float32
    assert kept.bool().double().mean() == pytest.approx(1 - rate, abs=0.06)  # three deviations of 560 draws


def test_masks_are_a_function_of_the_update(interpret):
    x, written, *_ = inputs()
    write = Residual(WIDTH, "post", 0.5, adds=True, normalisation=LayerNormConfig())
    first, other, again = interpret(interpreted.layer, write, x, written, (1, 2, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_without_dropout_the_layer_is_the_one_of_pytorch(interpret):
    x, written, *_ = inputs()
    write = Residual(WIDTH, "post", 0.0, adds=True, normalisation=LayerNormConfig())
    (found,) = interpret(interpreted.layer, write, x, written, (1,))
    assert_close(found, write(x, lambda x: written).detach())
