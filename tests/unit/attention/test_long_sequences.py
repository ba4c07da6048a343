"""What the contracts say of a few tokens, of sequences of several tiles, rounds and chunks; and what they cost."""

import pytest
import torch
from torch.testing import assert_close

from regardant.attention import KERNELS, ScaledDotProductConfig, View, scaled_dot_product
from regardant.attention.linear import LinearAttentionConfig
from regardant.attention.linformer import LinformerConfig
from regardant.attention.lsh import LSHConfig
from regardant.attention.performer import PerformerConfig
from regardant.attention.segment import SegmentConfig
from regardant.attention.sparse import SparseConfig
from regardant.attention.strided import StridedConfig
from regardant.attention.window import WindowConfig
from tests.unit.attention.largest_tensor import LargestTensor

LONG = 1024

EFFICIENT = {
    "window": WindowConfig(),
    "strided": StridedConfig(),
    "sparse": SparseConfig(),
    "segment": SegmentConfig(),
    "lsh": LSHConfig(),
    "linear": LinearAttentionConfig(),
    "performer": PerformerConfig(),
    "linformer": LinformerConfig(max_length=LONG),
}

SMALL = {
    "window": WindowConfig(window=70),
    "strided": StridedConfig(stride=3, num_strides=30),
    "sparse": SparseConfig(window=20, stride=5, num_strides=12, num_global=3),
    "segment": SegmentConfig(segment=45, memory=2),
    "lsh": LSHConfig(num_buckets=4, num_rounds=3, reach=20),
    "linear": LinearAttentionConfig(),
    "performer": PerformerConfig(num_features=20),
}
"""Those that can hide the future, with patterns that leave something out of 300 tokens and reach across tiles."""

by_name = pytest.mark.parametrize("name", SMALL)
SCENES = pytest.mark.parametrize("scene", ["everything", "causal", "padded", "causal and padded"])


def build(config, head_size=8):
    torch.manual_seed(0)
    return config.build(num_heads=2, head_size=head_size).double()


def view_of(scene, length=300):
    real = torch.ones(2, length).bool()
    real[0, 210:] = False
    real[1, :5] = False
    return View(causal="causal" in scene, keys=real if "padded" in scene else None)


def largest_tensor(attention, view):
    """In a forward and a backward pass over LONG tokens, two heads of 64."""
    q, k, v = (torch.randn(1, 2, LONG, 64).requires_grad_() for _ in range(3))
    with LargestTensor() as largest:
        attention(q, k, v, view).square().sum().backward()
    assert q.grad is not None and k.grad is not None and v.grad is not None
    return largest.numel


@SCENES
@by_name
def test_the_fast_path_equals_weights_times_values(draw, name, scene):
    inputs = [x.requires_grad_() for x in draw(300)]
    q, k, v = inputs
    attention = build(SMALL[name])
    fast = attention(q, k, v, view_of(scene))
    slow = attention.weights(q, k, view_of(scene)) @ v
    assert_close(fast, slow)
    of_mixed = torch.linspace(-1, 1, fast.numel()).double().view_as(fast)
    assert_close(torch.autograd.grad(fast, inputs, of_mixed), torch.autograd.grad(slow, inputs, of_mixed))


@by_name
def test_the_future_never_changes_the_past(draw, name):
    q, k, v = draw(300)
    attention = build(SMALL[name])
    before = attention(q, k, v, View(causal=True))
    for at in (1, 127, 128, 200):
        later = (torch.arange(300) >= at)[:, None]
        after = attention(q, k + 5 * later, v - 5 * later, View(causal=True))
        assert_close(after[:, :, :at], before[:, :, :at], rtol=0, atol=1e-12)


@pytest.mark.parametrize("prompt", [10, 130])
@by_name
def test_decoding_step_by_step_equals_one_pass(draw, name, prompt):
    tensors = draw(150, batch=1)
    attention = build(SMALL[name])
    state, answers = attention.start(150), []
    for q, k, v in zip(*(x.split([prompt, *[10] * ((150 - prompt) // 10)], 2) for x in tensors), strict=True):
        mixed, state = attention.step(q, k, v, state, View(causal=True))
        answers.append(mixed)
    assert_close(torch.cat(answers, 2), attention(*tensors, View(causal=True)))


@pytest.mark.parametrize(("name", "causal"), [(name, False) for name in EFFICIENT] + [(name, True) for name in SMALL])
def test_no_tensor_holds_a_number_for_each_pair(name, causal):
    attention = EFFICIENT[name].build(num_heads=2, head_size=64)
    assert largest_tensor(attention, View(causal=causal)) < LONG * LONG / 2


@by_name
def test_no_tensor_of_a_prompt_holds_a_number_for_each_pair(name):
    attention = EFFICIENT[name].build(num_heads=2, head_size=64)
    q, k, v = (torch.randn(1, 2, LONG, 64) for _ in range(3))
    with torch.no_grad(), LargestTensor() as largest:
        attention.step(q, k, v, attention.start(LONG), View(causal=True))
    assert largest.numel < LONG * LONG / 2


@pytest.mark.parametrize("kernel", ["sdpa", "matmul", "triton"])
def test_a_step_copies_no_keys_that_query_heads_share(kernel):
    attention = ScaledDotProductConfig().build(num_heads=8, head_size=64).eval()
    attention.kernel = KERNELS[kernel]
    q, k, v = torch.randn(1, 8, 1, 64), torch.randn(1, 2, LONG, 64), torch.randn(1, 2, LONG, 64)
    with torch.no_grad(), LargestTensor() as largest:
        attention(q, k, v, View(causal=True))
    assert largest.numel < k.numel() / 2


def test_of_the_explicit_matrix_a_tensor_holds_a_number_for_each_pair(monkeypatch):
    monkeypatch.setattr(scaled_dot_product, "LONGEST_MATMUL", LONG)
    attention = ScaledDotProductConfig().build(num_heads=2, head_size=64)
    attention.kernel = scaled_dot_product.matmul
    assert largest_tensor(attention, View()) >= 2 * LONG * LONG


@by_name
def test_a_gradient_can_be_taken_twice_from_one_pass(draw, name):
    inputs = [x.requires_grad_() for x in draw(300)]
    mixed = build(SMALL[name])(*inputs, View(causal=True))
    once = torch.autograd.grad(mixed.sum(), inputs, retain_graph=True)
    assert_close(torch.autograd.grad(mixed.sum(), inputs), once)


@pytest.mark.parametrize("causal", [False, True])
@by_name
def test_a_backward_pass_inside_of_mixed_precision_rounds_no_more_than_one_outside(name, causal):
    """1,200 tokens are several chunks where the future is hidden and where it is not."""
    attention = SMALL[name].build(num_heads=1, head_size=8)
    found = []
    for inside in (True, False):
        inputs = [torch.randn(1, 1, 1200, 8, generator=torch.Generator().manual_seed(0)) for _ in range(3)]
        inputs = [x.requires_grad_() for x in inputs]
        with torch.autocast("cpu", torch.bfloat16):
            mixed = attention(*inputs, View(causal=causal)).square().sum()
        with torch.autocast("cpu", torch.bfloat16, enabled=inside):
            found.append(torch.autograd.grad(mixed, inputs))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
