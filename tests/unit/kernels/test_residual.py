import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant.models import EncoderDecoderConfig

from . import interpreted

pytestmark = pytest.mark.xdist_group("kernels")

WIDTH = 40


def inputs():
    generator = torch.Generator().manual_seed(0)
    made = torch.randn(4, 2, 7, WIDTH, generator=generator)
    norm = nn.LayerNorm(WIDTH)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    return norm, *made


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("place", ["pre", "post"])
def test_it_computes_the_sum_its_norm_and_gradients(interpret, rate, place):
    norm, x, written, to_added, to_normed = inputs()
    seen = to_added if place == "pre" else None  # post-norm, nothing but the norm reads the sum
    found = interpret(interpreted.residual, x, written, norm, rate, 2**61 + 7, seen, to_normed)
    kept = (found[3] != 0) / (1 - rate)  # what is dropped has no gradient
    wide = [one.detach().double().requires_grad_() for one in (x, written, norm.weight, norm.bias)]
    added = wide[0] + kept * wide[1]
    normed = nn.functional.layer_norm(added, (WIDTH,), *wide[2:], norm.eps)
    total = (normed * to_normed).sum() + (0 if seen is None else (added * seen).sum())
    for mine, right in zip(found, [added, normed, *torch.autograd.grad(total, wide)], strict=True):
        assert_close(mine.double(), right.detach(), rtol=1e-4, atol=1e-5)  # float32
    assert kept.bool().double().mean() == pytest.approx(1 - rate, abs=0.06)  # three deviations of 560 draws


def config(place, dropout):
    return EncoderDecoderConfig(preset=None, d_model=WIDTH, num_heads=4, norm=place, dropout=dropout)


@pytest.mark.parametrize("place", ["pre", "post"])
def test_a_stream_in_one_pass_is_the_plain_one(interpret, place):
    _, x, *writes = inputs()
    ((kind, *fused),) = interpret(interpreted.stream, config(place, 0.0), x, writes, (1,), True)
    ((_, *plain),) = interpret(interpreted.stream, config(place, 0.0), x, writes, (1,), False)
    assert kind == "FusedStream"
    for mine, right in zip(fused, plain, strict=True):
        assert_close(mine, right, rtol=1e-4, atol=1e-5)  # float32


@pytest.mark.parametrize("place", ["pre", "post"])
def test_masks_are_a_function_of_the_update(interpret, place):
    _, x, *writes = inputs()
    first, other, again = interpret(interpreted.stream, config(place, 0.5), x, writes, (1, 2, 1), True)
    assert all(map(torch.equal, first[1:], again[1:]))
    assert not torch.equal(first[1], other[1])
