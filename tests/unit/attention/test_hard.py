import torch
from torch.testing import assert_close

from regardant.attention import ScaledDotProductConfig, View
from regardant.attention.hard import HardConfig


def hard():
    return HardConfig().build(num_heads=2, head_size=8)


def test_it_is_the_limit_of_a_softmax_whose_temperature_goes_to_zero(draw):
    tensors = draw(12)
    distances = []
    for temperature in (1.0, 0.1, 0.01, 1e-4):
        soft = ScaledDotProductConfig(temperature=temperature).build(num_heads=2, head_size=8)
        distances.append(float((soft(*tensors) - hard()(*tensors)).norm()))
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-6


def test_it_is_the_value_of_the_best_key(draw):
    q, k, v = draw(12)
    best = (q @ k.mT).argmax(-1)
    assert torch.equal(hard()(q, k, v), v.gather(2, best[..., None].expand_as(v)))


def test_keys_that_tie_share_alike():
    weights = hard().normalise(torch.tensor([[[[1.0, 3.0, 3.0, -torch.inf]]]]))
    assert weights.flatten().tolist() == [0, 0.5, 0.5, 0]


def test_only_values_get_a_gradient(draw):
    q, k, v = (x.requires_grad_() for x in draw(12))
    to_q, to_k, to_v = torch.autograd.grad(hard()(q, k, v, View(causal=True)).sum(), (q, k, v), allow_unused=True)
    assert to_q is None and to_k is None
    assert_close(to_v.sum(), torch.tensor(2 * 2 * 12 * 8.0).double())
