import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regardant.errors import ConfigError
from regardant.layers.linear import Linear
from regardant.training.lora import LoraConfig, LowRankSum, adapt, merged, plain_weights

LORA = LoraConfig(rank=2, alpha=6.0)


def small():
    """Return a model with an embedding that a linear layer shares, and two layers of their own."""
    torch.manual_seed(1)
    model = nn.ModuleDict({"words": nn.Embedding(7, 8), "tied": Linear(8, 7), "widen": Linear(8, 16)})
    model["narrow"] = nn.Linear(16, 8)
    model["tied"].weight = model["words"].weight
    return model


def learned(model):
    """Let both thin matrices of all layers be as if they had learned."""
    torch.manual_seed(2)
    for module in model.modules():
        if isinstance(module, LowRankSum):
            nn.init.normal_(module.up)
    return model


def test_a_layer_adds_the_product_of_its_thin_matrices():
    model, plain = small(), small()
    adapt(model, LORA, ["widen", "narrow"])
    x = torch.randn(5, 8)
    torch.testing.assert_close(model["widen"](x), plain["widen"](x), rtol=0, atol=0)  # B = 0
    factors = learned(model)["widen"].parametrizations.weight[0]
    added = 3.0 * F.linear(F.linear(x, factors.down), factors.up)
    # Sums of eight products in another order.
    torch.testing.assert_close(model["widen"](x), plain["widen"](x) + added, rtol=1e-5, atol=1e-5)


def test_only_thin_matrices_and_other_parts_learn():
    model = small()
    adapt(model, LORA, ["widen"])
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert {name for name in names if name.startswith("widen")} == {
        f"widen.parametrizations.weight.0.{one}" for one in ("down", "up")
    }
    assert {"words.weight", "narrow.weight", "narrow.bias"} <= names


def test_shared_matrices_stay_as_they_are():
    model = small()
    with pytest.raises(ConfigError, match=r"training\.lora: found no linear layer of its own in words, tied: "):
        adapt(model, LORA, ["words", "tied"])
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_merged_model_has_the_names_and_the_outputs_of_a_plain_one():
    model, plain, x = small(), small(), torch.randn(5, 8)
    adapt(model, LORA, ["widen", "narrow"])
    learned(model)
    expected = model["narrow"](model["widen"](x))
    before = {name: one.clone() for name, one in model.state_dict().items()}
    with torch.inference_mode(), merged(model):
        torch.testing.assert_close(model["narrow"](model["widen"](x)), expected, rtol=0, atol=0)
        weights = {name: one.clone() for name, one in plain_weights(model).items()}
    assert weights.keys() == plain.state_dict().keys()
    plain.load_state_dict(weights)
    torch.testing.assert_close(plain["narrow"](plain["widen"](x)), expected, rtol=0, atol=0)
    after = model.state_dict()
    assert all(torch.equal(after[name], one) for name, one in before.items())
    torch.testing.assert_close(model["narrow"](model["widen"](x)), expected, rtol=0, atol=0)


def test_the_sum_keeps_the_precision_of_the_matrix_under_autocast():
    model = small()
    adapt(model, LORA, ["widen"])
    exact = learned(model)["widen"].weight
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(model["widen"].weight, exact, rtol=0, atol=0)


def test_gradients_are_those_of_the_product():
    model, x = small(), torch.randn(5, 8)
    adapt(model, LORA, ["widen"])
    layer = learned(model)["widen"]
    layer(x).square().sum().backward()
    matrix = layer.weight.detach().requires_grad_()
    F.linear(x, matrix, layer.bias).square().sum().backward()
    factors = layer.parametrizations.weight[0]
    torch.testing.assert_close(factors.up.grad, 3.0 * matrix.grad @ factors.down.T)
    torch.testing.assert_close(factors.down.grad, 3.0 * factors.up.T @ matrix.grad)
    assert layer.parametrizations.weight.original.grad is None
