import pytest
import torch
from torch.testing import assert_close

from regardant.layers.label_smoothed_cross_entropy import projected_cross_entropy

from . import interpreted

pytestmark = pytest.mark.xdist_group("kernels")


@pytest.mark.parametrize(("label_smoothing", "z_loss"), [(0.0, 0.0), (0.1, 0.0), (0.1, 0.01)])
def test_it_computes_the_loss_and_gradients_of_pytorch(interpret, label_smoothing, z_loss):
    generator = torch.Generator().manual_seed(0)
    vectors, weight = torch.randn(5, 8, generator=generator), torch.randn(5000, 8, generator=generator)
    targets = torch.tensor([0, 4999, 17, 4096, 4095])  # words of both blocks
    found = interpret(interpreted.cross_entropy, vectors, weight, targets, label_smoothing, z_loss)
    inputs = [x.clone().requires_grad_() for x in (vectors, weight)]
    total, plain = projected_cross_entropy(*inputs, targets, label_smoothing, z_loss)
    for mine, right in zip(found, (total, plain, *torch.autograd.grad(total, inputs)), strict=True):
        assert_close(mine, right.detach(), rtol=1e-4, atol=1e-5)  # float32


def test_large_logits_overflow_nothing(interpret):
    vectors, weight = torch.full((2, 1), 1000.0), torch.linspace(-1, 1, 5000)[:, None]
    found = interpret(interpreted.cross_entropy, vectors, weight, torch.tensor([4999, 0]), 0.0, 0.0)
    assert all(one.isfinite().all() for one in found)
