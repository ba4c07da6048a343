import pytest
import torch
from torch.testing import assert_close

from regardant.attention import KERNELS, ScaledDotProductConfig, View, scaled_dot_product
from regardant.attention.causal_tiles import attend_in_causal_tiles
from regardant.attention.masks import padding
from regardant.attention.scaled_dot_product import matmul


def tensors(num_keys=6):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 4, n, 8, generator=generator) for n in (6, num_keys, num_keys)]


def kernels_that_ran(monkeypatch, attention, *tensors):
    """Return the names of the kernels that ran."""
    ran = []
    for name in ("sdpa", "matmul", "causal_tiles"):
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


@pytest.mark.parametrize(
    ("dtype", "view", "ran"),
    [
        (torch.bfloat16, View(causal=True), "causal_tiles"),
        (torch.float32, View(causal=True), "sdpa"),
        (torch.bfloat16, View(), "sdpa"),
        (torch.bfloat16, View(causal=True, keys=torch.ones(2, 6, dtype=torch.bool)), "sdpa"),
    ],
)
def test_tiles_run_for_long_texts_in_bfloat16(monkeypatch, dtype, view, ran):
    monkeypatch.setattr(scaled_dot_product, "TILE", 5)
    monkeypatch.setattr(scaled_dot_product, "LONGEST_MATMUL", 5)
    attention = ScaledDotProductConfig().build(num_heads=4, head_size=8)
    attention.kernel = KERNELS["matmul"]
    assert kernels_that_ran(monkeypatch, attention, *(x.to(dtype) for x in tensors()), view) == [ran]


@pytest.mark.parametrize("scale", [0.125, 0.3])
@pytest.mark.parametrize("length", [1, 256, 600])
def test_tiles_round_no_more_than_bfloat16_does(length, scale):
    generator = torch.Generator().manual_seed(0)
    sizes = (64, 64, 32)
    inputs = [torch.randn(2, 3, length, size, generator=generator).requires_grad_() for size in sizes]
    gradient = torch.randn(2, 3, length, 32, generator=generator)
    hidden = torch.full((length, length), -torch.inf).triu(1)
    q, k, v = inputs
    exact = torch.softmax(q @ k.mT * scale + hidden, -1) @ v
    with torch.autocast("cpu", torch.bfloat16):
        mixed = attend_in_causal_tiles(*inputs, scale)
    assert mixed.dtype == torch.bfloat16
    found, expected = (torch.autograd.grad(x, inputs, gradient.to(x.dtype)) for x in (mixed, exact))
    for one, other in zip((mixed, *found), (exact, *expected), strict=True):
        # Scores, weights and their gradients are each rounded to 8 bits: half of 2 ** -8 relative, a few times.
        assert (one.float() - other).norm() <= 0.015 * other.norm() + 1e-6


def rounded_by_bfloat16(queries, keys):
    """Return a bias whose differences are lost in bfloat16."""
    return (20 + (queries[:, None] - keys) / 100).expand(3, -1, -1)


def padded(*lengths):
    """Return a view of 100 keys, of which each row has so many."""
    return padding(torch.arange(100) < torch.tensor(lengths)[:, None])


@pytest.mark.parametrize("scale", [0.125, 0.3])
@pytest.mark.parametrize(
    "view",
    [View(), View(causal=True), padded(100, 64), padded(30, 0), View(bias=rounded_by_bfloat16)],
    ids=["everything", "causal", "padded", "fully masked", "bias"],
)
def test_narrow_products_round_no_more_than_bfloat16_does(view, scale):
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(2, 3, 100, size, generator=generator).requires_grad_() for size in (64, 64, 32)]
    gradient = torch.randn(2, 3, 100, 32, generator=generator)
    exact = ScaledDotProductConfig(scaled=False, temperature=1 / scale).build(num_heads=3, head_size=64)
    expected = exact.compute_weights(*inputs[:2], view) @ inputs[2]
    with torch.autocast("cpu", torch.bfloat16):
        mixed = matmul(*inputs, view, scale)
    assert mixed.dtype == torch.bfloat16
    found = torch.autograd.grad(mixed, inputs, gradient.bfloat16())
    for one, other in zip((mixed, *found), (expected, *torch.autograd.grad(expected, inputs, gradient)), strict=True):
        # Scores, weights and their gradients are each rounded to 8 bits: half of 2 ** -8 relative, a few times.
        assert (one.float() - other).norm() <= 0.015 * other.norm() + 1e-6


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


def test_under_autocast_heads_are_stored_as_projections_store_them():
    given = [x.bfloat16().requires_grad_() for x in tensors()]
    with torch.autocast("cpu", torch.bfloat16):
        mixed = matmul(*given, View(), 0.3)
    gradients = torch.autograd.grad(mixed.float().square().sum(), given)
    for one in (mixed, *gradients):
        assert one.dtype == torch.bfloat16 and one.transpose(1, 2).is_contiguous()


def test_a_second_derivative_through_matmul_is_refused_and_not_wrong():
    q, k, v = (x.requires_grad_() for x in tensors())
    (gradient,) = torch.autograd.grad(matmul(q, k, v, View(), 0.3).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
