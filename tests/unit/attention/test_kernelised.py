import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regardant.attention import View
from regardant.attention.kernelised import CHUNK, PORTION, KernelisedAttention
from regardant.attention.linear import LinearAttentionConfig


class Learned(KernelisedAttention):
    """Features that learn, as a user might write them."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(8, dtype=torch.float64))

    def query_features(self, q):
        return F.softplus(q @ self.weight)

    def key_features(self, k):
        return F.softplus(k @ self.weight)


def linear():
    return LinearAttentionConfig().build(num_heads=2, head_size=8)


def by_pairs(q, k, v, causal):
    """Katharopoulos et al. 2020, eq. 7 and 8, pair by pair."""
    matches = (F.elu(q) + 1) @ (F.elu(k) + 1).mT
    if causal:
        matches = matches.tril()
    return matches @ v / matches.sum(-1, keepdim=True)


@pytest.mark.parametrize("length", [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_where_the_future_is_hidden_chunks_give_what_pairs_give(draw, length):
    tensors = draw(length)
    assert_close(linear()(*tensors, View(causal=True)), by_pairs(*tensors, causal=True))


@pytest.mark.parametrize("length", [1, PORTION, PORTION + 1])
def test_where_it_is_not_portions_give_what_pairs_give(draw, length):
    tensors = draw(length, batch=1)
    assert_close(linear()(*tensors), by_pairs(*tensors, causal=False))


@pytest.mark.parametrize("num_queries", [1, 3, 140])
def test_the_last_queries_get_what_all_would(draw, num_queries):
    q, k, v = draw(200)
    all_of_them = linear()(q, k, v, View(causal=True))
    assert_close(linear()(q[:, :, -num_queries:], k, v, View(causal=True)), all_of_them[:, :, -num_queries:])


def test_queries_before_the_first_key_mix_to_zeros(draw):
    q, k, v = draw(200)
    mixed = linear()(q, k[:, :, 30:], v[:, :, 30:], View(causal=True))
    assert (mixed[:, :, :30] == 0).all()
    assert_close(mixed[:, :, 30:], by_pairs(*(x[:, :, 30:] for x in (q, k, v)), causal=True))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [20, PORTION + 100])
def test_features_may_learn(draw, length, causal):
    q, k, v = draw(length, batch=1)
    attention = Learned()
    gradients = []
    for mixed in (attention(q, k, v, View(causal=causal)), attention.weights(q, k, View(causal=causal)) @ v):
        of_mixed = torch.linspace(-1, 1, mixed.numel()).double().view_as(mixed)
        gradients += torch.autograd.grad(mixed, attention.weight, of_mixed)
    assert_close(*gradients)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_features_and_gradients_of_very_negative_numbers_keep_their_digits(dtype):
    x = torch.tensor([-80, -30, -17.5, -17, -3, -1e-3, 0, 1e-3, 2, 40], dtype=dtype).requires_grad_()
    features = linear().key_features(x[None, None, None])[0, 0, 0]
    (gradient,) = torch.autograd.grad(features.sum(), x)
    wide = x.detach().double()
    assert features.dtype == torch.float32
    assert_close(features.double(), torch.where(wide > 0, wide + 1, wide.exp()), rtol=1e-5, atol=0)
    right = torch.where(wide > 0, 1, wide.exp())
    assert_close(gradient.double(), right, rtol=1e-5 if dtype == torch.float32 else 2**-8, atol=0)


def test_infinite_numbers_have_a_finite_gradient():
    x = torch.tensor([-torch.inf, torch.inf], requires_grad=True)
    features = linear().query_features(x[None, None, None])[0, 0, 0]
    (gradient,) = torch.autograd.grad(features.sum(), x)
    assert features.tolist() == [0, torch.inf] and gradient.tolist() == [0, 1]


def test_the_state_is_of_constant_size(draw):
    attention, state, sizes = linear(), None, set()
    for q, k, v in zip(*(x.split(1, 2) for x in draw(2 * CHUNK)), strict=True):
        _, state = attention.step(q, k, v, state, View(causal=True))
        sizes.add(tuple(part.shape for part in state))
    assert len(sizes) == 1


def test_half_precision_is_summed_in_full(draw):
    narrow = [x.bfloat16() for x in draw(3 * CHUNK)]
    mixed = linear()(*narrow, View(causal=True))
    with torch.autocast("cpu", torch.bfloat16):
        under_autocast = linear()(*narrow, View(causal=True))
    assert mixed.dtype == torch.bfloat16
    assert torch.equal(under_autocast, mixed)
