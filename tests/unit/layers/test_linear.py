import threading

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant.layers.linear import Layouts, Linear, linear


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return Linear(6, 10)


@pytest.mark.parametrize("shape", [(6,), (3, 6), (2, 3, 6), (0, 6)])
def test_a_layer_says_the_same_by_any_layout(layer, shape):
    x = torch.randn(shape)
    with Layouts().in_use(), torch.inference_mode():
        assert_close(layer(x), nn.functional.linear(x, layer.weight, layer.bias), rtol=1e-5, atol=1e-6)
        assert_close(linear(x, layer.weight), nn.functional.linear(x, layer.weight), rtol=1e-5, atol=1e-6)


def test_outside_of_a_search_a_layer_is_torchs_own(layer):
    plain = nn.Linear(6, 10)
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(4, 6, requires_grad=True)
    assert torch.equal(layer(x), plain(x))
    (mine,), (theirs,) = (torch.autograd.grad(one(x).square().sum(), x) for one in (layer, plain))
    assert torch.equal(mine, theirs)


def test_products_are_rounded_and_nothing_else(layer):
    x = torch.randn(50, 6)
    with Layouts(torch.bfloat16).in_use(), torch.inference_mode():
        said = layer(x)
    exact = layer(x)
    assert said.dtype == torch.float32
    assert not torch.equal(said, exact)
    assert_close(said, exact, rtol=0.02, atol=0.02)
    assert layer.weight.dtype == torch.float32


def test_weights_are_laid_out_as_they_are_when_a_search_begins(layer):
    x = torch.randn(4, 6)
    for _ in range(2):
        with Layouts().in_use(), torch.inference_mode():
            assert_close(layer(x), x @ layer.weight.T + layer.bias)
        layer.weight.data += 1


def test_a_layout_is_one_threads_business(layer):
    x, seen = torch.randn(4, 6), []
    with Layouts(torch.bfloat16).in_use(), torch.inference_mode():
        other = threading.Thread(target=lambda: seen.append(layer(x).detach()))
        other.start()
        other.join()
    assert torch.equal(seen[0], nn.functional.linear(x, layer.weight, layer.bias))
