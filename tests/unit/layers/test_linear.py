import threading

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant.layers import linear as linears
from regardant.layers import products
from regardant.layers.activations import ACTIVATIONS
from regardant.layers.linear import Layouts, Linear, linear, multiplied, narrow_weights


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


@pytest.mark.parametrize("supported", [True, False], ids=["packed", "without AVX-512"])
def test_products_are_rounded_and_nothing_else(layer, monkeypatch, supported):
    if not supported:
        monkeypatch.setattr(products, "has_narrow_onednn", lambda: False)
        monkeypatch.delattr(linears, "_pack")
    x = torch.randn(50, 6)
    with Layouts(torch.bfloat16).in_use(), torch.inference_mode():
        said = layer(x)
    exact = layer(x)
    assert said.dtype == torch.float32
    assert not torch.equal(said, exact)
    assert_close(said, exact, rtol=0.02, atol=0.02)
    assert layer.weight.dtype == torch.float32


@pytest.mark.parametrize("part", ["weight", "bias"])
def test_what_has_changed_is_laid_out_anew(layer, part):
    x, layouts = torch.randn(4, 6), Layouts()
    for _ in range(2):
        with layouts.in_use(), torch.inference_mode():
            assert_close(layer(x), x @ layer.weight.T + layer.bias)
        with torch.no_grad():
            getattr(layer, part).add_(1)


def test_what_has_not_changed_is_laid_out_once(layer, monkeypatch):
    made, lay_out, layouts = [], linears._lay_out, Layouts()
    monkeypatch.setattr(linears, "_lay_out", lambda *given: made.append(given) or lay_out(*given))
    for _ in range(3):
        with layouts.in_use(), torch.inference_mode():
            layer(torch.randn(4, 6))
    assert len(made) == 1


def test_what_goes_into_another_product_stays_narrow_in_a_search_alone():
    layer = Linear(6, 10, stays_narrow=True)
    x = torch.randn(4, 6)
    with Layouts(torch.bfloat16).in_use(), torch.inference_mode():
        assert layer(x).dtype == torch.bfloat16
    with Layouts().in_use(), torch.inference_mode():
        assert layer(x).dtype == torch.float32


@pytest.mark.parametrize("fused", [True, False], ids=["oneDNN", "PyTorch"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_layout_computes_the_activation_too(layer, monkeypatch, activation, fused):
    monkeypatch.setattr(products, "has_fast_onednn", lambda: fused)
    monkeypatch.setattr(products, "SMALLEST_AGAIN", 1)
    x = torch.randn(3, 6)
    expected = ACTIVATIONS[activation](nn.functional.linear(x, layer.weight, layer.bias))
    assert torch.equal(layer(x, activation), expected)
    with Layouts().in_use(), torch.inference_mode():
        assert_close(layer(x, activation), expected, rtol=1e-5, atol=1e-5)
    with Layouts(torch.bfloat16).in_use(), torch.inference_mode():
        assert_close(layer(x, activation), expected, rtol=0.02, atol=0.02)  # inputs are rounded to 8 bits


def test_a_layout_is_one_threads_business(layer):
    x, seen = torch.randn(4, 6), []
    with Layouts(torch.bfloat16).in_use(), torch.inference_mode():
        other = threading.Thread(target=lambda: seen.append(layer(x).detach()))
        other.start()
        other.join()
    assert torch.equal(seen[0], nn.functional.linear(x, layer.weight, layer.bias))


def test_what_needs_no_gradient_gets_none(layer):
    layer.weight.requires_grad_(False)
    with torch.autocast("cpu", torch.bfloat16):
        layer(torch.randn(3, 6)).sum().backward()
    assert layer.weight.grad is None
    assert torch.equal(layer.bias.grad, torch.full((10,), 3.0))


@pytest.fixture
def model():
    torch.manual_seed(0)
    layers = [Linear(6, 6, bias=number % 3 > 0) for number in range(40)]  # two groups
    return nn.Sequential(*layers, layers[0], nn.LayerNorm(6))


def gradients_of(model, *, narrow):
    weights = multiplied(model)
    x = torch.ones(2, 6)
    with torch.autocast("cpu", torch.bfloat16):
        if narrow:
            with narrow_weights(weights, torch.bfloat16):
                output = model(x)
        else:
            output = model(x)
    return output.detach(), torch.autograd.grad(output.float().square().sum(), weights)


def test_multiplied_weights_are_those_of_linear_layers_each_once(model):
    assert len(multiplied(model)) == 40 + 26


def test_narrow_weights_have_the_outputs_and_gradients_of_autocast(model):
    output, gradients = gradients_of(model, narrow=True)
    expected, others = gradients_of(model, narrow=False)
    assert torch.equal(output, expected)
    for mine, right in zip(gradients, others, strict=True):
        assert mine.dtype == torch.float32
        assert_close(mine, right, rtol=2**-6, atol=2**-6 * float(right.abs().max()))  # rounded to 8 bits, twice


def test_an_unused_weight_has_no_gradient(model):
    weights = [nn.Parameter(torch.ones(2, 2)), *multiplied(model)]
    with narrow_weights(weights, torch.bfloat16), torch.autocast("cpu", torch.bfloat16):
        output = model(torch.ones(2, 6))
    output.float().sum().backward()
    assert weights[0].grad is None
    assert all(weight.grad is not None for weight in weights[1:])


def test_all_groups_are_narrowed(model):
    x = torch.ones(2, 6, dtype=torch.bfloat16)
    with narrow_weights(multiplied(model), torch.bfloat16):
        assert {layer(x).dtype for layer in model if isinstance(layer, Linear)} == {torch.bfloat16}


def test_outside_of_the_context_layers_multiply_by_their_weights(model):
    layer = model[0]
    with narrow_weights([layer.weight], torch.bfloat16):
        pass
    assert torch.equal(layer(torch.ones(2, 6)), nn.functional.linear(torch.ones(2, 6), layer.weight))


def test_copies_of_frozen_weights_need_no_gradient():
    frozen, learned = (torch.nn.Linear(4, 4) for _ in range(2))
    frozen.requires_grad_(False)
    with narrow_weights([frozen.weight, learned.weight], torch.bfloat16):
        copies = linears._narrow.get()
        assert [copies[one.weight].requires_grad for one in (frozen, learned)] == [False, True]
