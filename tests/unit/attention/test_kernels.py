import pytest
import torch
from torch.testing import assert_close

from regardant.attention import KERNELS, ScaledDotProductConfig, View, scaled_dot_product
from regardant.attention.scaled_dot_product import matmul


def tensors(num_keys=6):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 4, n, 8, generator=generator) for n in (6, num_keys, num_keys)]


def kernels_that_ran(monkeypatch, attention, *tensors):
    """Return the names of the kernels that ran."""
    ran = []
    for name in ("sdpa", "matmul"):
        kernel = getattr(scaled_dot_product, name)

        def counted(*arguments, name=name, kernel=kernel):
            ran.append(name)
            return kernel(*arguments)

        monkeypatch.setattr(scaled_dot_product, name, counted)
        if attention.kernel is kernel:
            attention.kernel = counted
    attention(*tensors)
    return ran


@pytest.mark.parametrize(
    ("kernel", "num_keys", "grad", "ran"),
    [
        ("matmul", 6, True, "matmul"),
        ("matmul", 7, True, "sdpa"),
        ("matmul", 6, False, "sdpa"),
        ("sdpa", 6, True, "sdpa"),
    ],
)
def test_matmul_runs_where_a_backward_pass_of_few_keys_follows(monkeypatch, kernel, num_keys, grad, ran):
    monkeypatch.setattr(scaled_dot_product, "LONGEST_MATMUL", 6)
    attention = ScaledDotProductConfig().build(num_heads=4, head_size=8)
    attention.kernel = KERNELS[kernel]
    with torch.set_grad_enabled(grad):
        assert kernels_that_ran(monkeypatch, attention, *tensors(num_keys)) == [ran]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", [1.0, 0.125])
def test_the_scale_is_obeyed(kernel, scale):
    q, k, v = tensors()
    assert_close(KERNELS[kernel](q, k, v, View(), scale), torch.softmax(q @ k.mT * scale, -1) @ v)


@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_of_a_thousand_overflow_nothing(kernel):
    q, k, v = (x.requires_grad_() for x in tensors())
    mixed = KERNELS[kernel](q * 100, k * 100, v, View(causal=True), 1.0)
    assert mixed.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(mixed.sum(), (q, k, v)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_under_autocast_the_answer_is_bfloat16(kernel):
    q, k, v = tensors()
    exact = KERNELS[kernel](q, k, v, View(causal=True), 0.3)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = KERNELS[kernel](*(x.bfloat16() for x in (q, k, v)), View(causal=True), 0.3)
    assert mixed.dtype == torch.bfloat16
    assert (mixed - exact).abs().max() < 0.05


@pytest.mark.parametrize("kernel", KERNELS)
def test_wide_inputs_under_autocast_learn_after_it(kernel):
    inputs = [x.requires_grad_() for x in tensors()]
    exact = torch.autograd.grad(KERNELS[kernel](*inputs, View(causal=True), 0.3).sum(), inputs)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = KERNELS[kernel](*inputs, View(causal=True), 0.3)
    found = torch.autograd.grad(mixed.float().sum(), inputs)
    assert all(gradient.dtype == torch.float32 for gradient in found)
    assert_close(found, exact, rtol=0, atol=0.05)


def test_a_second_derivative_through_matmul_is_refused_and_not_wrong():
    q, k, v = (x.requires_grad_() for x in tensors())
    (gradient,) = torch.autograd.grad(matmul(q, k, v, View(), 0.3).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
