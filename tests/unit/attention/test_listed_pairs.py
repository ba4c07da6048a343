"""Attention along the pairs of a sparse mask is attention under the mask."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant.attention import PassView, ScaledDotProductConfig, View
from regardant.attention.additive import AdditiveConfig
from regardant.attention.graph_attention import GraphAttentionConfig

LENGTH = 64
MECHANISMS = [
    ScaledDotProductConfig(),
    ScaledDotProductConfig(temperature=0.5),
    AdditiveConfig(),
    GraphAttentionConfig(),
]


def sparse_mask(length=LENGTH, *, isolated=5):
    generator = torch.Generator().manual_seed(0)
    mask = torch.rand(1, 1, length, length, generator=generator) < 0.03
    mask[:, :, isolated] = False
    return mask


def tensors():
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(2, 3, LENGTH, 4, generator=generator, requires_grad=True) for _ in range(3)]


@pytest.mark.parametrize("config", MECHANISMS, ids=lambda config: config.kind)
@pytest.mark.parametrize("keys", [None, torch.arange(LENGTH)[None] < 60], ids=["no padding", "padding"])
def test_values_and_gradients_are_those_of_all_pairs_under_the_mask(config, keys):
    torch.manual_seed(0)
    mechanism = config.build(num_heads=3, head_size=4)
    view = PassView(pairs=sparse_mask(), keys=keys)
    q, k, v = tensors()
    assert view.listed_pairs(q, k) is not None
    expected = mechanism.weights(q, k, view) @ v
    found = mechanism(q, k, v, view)
    assert_close(found, expected)
    assert not found[:, :, 5].any()
    wanted = torch.autograd.grad(expected.square().sum(), (q, k, v))
    for one, other in zip(torch.autograd.grad(found.square().sum(), (q, k, v)), wanted, strict=True):
        assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("config", MECHANISMS, ids=lambda config: config.kind)
def test_weights_are_dropped_as_those_of_all_pairs(config):
    class Square(nn.Module):
        def forward(self, weights):
            return weights.square()

    torch.manual_seed(0)
    mechanism, view = config.build(num_heads=3, head_size=4), PassView(pairs=sparse_mask())
    q, k, v = tensors()
    expected = mechanism.weights(q, k, view).square() @ v
    mechanism.drop = Square()
    assert_close(mechanism(q, k, v, view), expected)


def test_scores_of_a_thousand_are_normalised_without_overflow():
    q, k, v = (1000 * one for one in tensors())
    found = ScaledDotProductConfig().build(num_heads=3, head_size=4)(q, k, v, View(pairs=sparse_mask()))
    assert found.isfinite().all()


@pytest.mark.parametrize(
    "view",
    [
        View(),
        View(pairs=torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool)),
        View(pairs=sparse_mask().expand(2, -1, -1, -1)),
        View(pairs=sparse_mask(), bias=lambda q, k: torch.ones(1, len(q), len(k))),
    ],
    ids=["no pairs", "many pairs", "a mask each", "a bias"],
)
def test_other_pairs_are_not_listed(view):
    q, k, _ = tensors()
    assert view.listed_pairs(q, k) is None


def test_pairs_are_listed_once_in_a_pass(monkeypatch):
    q, k, _ = tensors()
    view, calls = PassView(pairs=sparse_mask()), []
    monkeypatch.setattr(View, "listed_pairs", lambda self, q, k: calls.append(1))
    assert view.listed_pairs(q, k) is None and view.listed_pairs(q, k) is None
    assert len(calls) == 1
