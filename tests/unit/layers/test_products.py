import sys

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from regardant.layers import label_smoothed_cross_entropy, products
from regardant.layers.linear import Layouts, Linear
from regardant.layers.products import gradient_of_weight, has_fast_onednn, linear, takes, times

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


@pytest.fixture
def small(monkeypatch):
    """Let oneDNN multiply on any processor, and also small matrices."""
    monkeypatch.setattr(products, "has_fast_onednn", lambda: True)
    monkeypatch.setattr(products, "SMALLEST", 1)
    monkeypatch.setattr(products, "SMALLEST_AGAIN", 1)


@pytest.fixture
def multiplied(small, monkeypatch):
    """The shapes of all products by oneDNN."""
    shapes, multiply = [], products.multiply

    def noted(x, weight, bias, activation=None):
        shapes.append((tuple(x.shape), tuple(weight.shape)))
        return multiply(x, weight, bias, activation)

    monkeypatch.setattr(products, "multiply", noted)
    return shapes


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("num_outputs", [3, 40], ids=["fewer outputs", "more outputs"])
@pytest.mark.parametrize("shape", [(8,), (5, 8), (2, 5, 8)])
def test_the_product_and_its_gradients_are_torchs(multiplied, shape, num_outputs, bias):
    torch.manual_seed(0)
    inputs = [torch.randn(shape), torch.randn(num_outputs, 8), torch.randn(num_outputs)][: 2 + bias]
    weigh, found = torch.randn(*shape[:-1], num_outputs), []
    for function in (linear, F.linear):
        given = [one.clone().requires_grad_() for one in inputs]
        said = function(*given)
        found.append((said, *torch.autograd.grad((said * weigh).sum(), given)))
    assert len(multiplied) == 3  # forward, to x, to the weight
    for mine, theirs in zip(*found, strict=True):
        assert mine.stride() == theirs.stride()
        assert_close(mine, theirs, rtol=1e-5, atol=1e-5)  # sums of 40 numbers in another order


@pytest.mark.skipif(not products.has_narrow_onednn(), reason="this processor has no products in bfloat16")
@pytest.mark.parametrize("shape", [(8,), (5, 8), (2, 5, 8)])
def test_a_product_in_bfloat16_adds_its_bias_as_torch_does(shape, monkeypatch):
    torch.manual_seed(0)
    inputs = [one.bfloat16() for one in (torch.randn(shape), torch.randn(40, 8), torch.randn(40))]
    weigh, multiply, biases = torch.randn(*shape[:-1], 40), products.multiply, []
    monkeypatch.setattr(products, "multiply", lambda *given: biases.append(given[2]) or multiply(*given))
    found = []
    for function in (linear, F.linear):
        given = [one.clone().requires_grad_() for one in inputs]
        output = function(*given)
        found.append((output, *torch.autograd.grad((output * weigh).sum(), given)))
    assert [len(bias) for bias in biases] == [40]
    for mine, theirs in zip(*found, strict=True):
        assert_close(mine, theirs, rtol=2**-7, atol=2**-7)  # the last of 8 bits


@pytest.mark.parametrize("needed", [0, 1, 2])
def test_only_the_gradient_that_is_needed_is_computed(multiplied, needed):
    given = [torch.randn(5, 8), torch.randn(3, 8), torch.randn(3)]
    given[needed].requires_grad_()
    linear(*given).sum().backward()
    assert len(multiplied) == (2 if needed < 2 else 1)
    expected = [torch.ones(5, 3) @ given[1], torch.ones(3, 5) @ given[0], torch.full((3,), 5.0)][needed]
    assert_close(given[needed].grad, expected.detach(), rtol=1e-5, atol=1e-5)


def test_views_are_multiplied_as_they_lie(small):
    torch.manual_seed(0)
    x, weight = torch.randn(6, 16)[:, ::2], torch.randn(8, 5).T
    assert_close(times(x, weight), x @ weight.T, rtol=1e-5, atol=1e-5)
    assert_close(gradient_of_weight(torch.ones(1, 1).expand(6, 5), x), x.sum(0).expand(5, -1), rtol=1e-5, atol=1e-5)


def test_a_search_multiplies_by_blocks(multiplied):
    torch.manual_seed(0)
    layer, x = Linear(8, 10), torch.randn(3, 5, 8)
    with Layouts().in_use(), torch.inference_mode():
        said = layer(x)
    assert len(multiplied) == 1
    assert_close(said, F.linear(x, layer.weight, layer.bias), rtol=1e-5, atol=1e-5)


def test_the_loss_of_a_vocabulary_multiplies_so_too(multiplied, monkeypatch):
    torch.manual_seed(0)
    vectors, weight, targets = torch.randn(20, 8), torch.randn(30, 8), torch.randint(30, (20,))
    found = []
    for fast in (True, False):
        monkeypatch.setattr(products, "has_fast_onednn", lambda fast=fast: fast)
        given = [one.clone().requires_grad_() for one in (vectors, weight)]
        total, _ = label_smoothed_cross_entropy.projected_cross_entropy(*given, targets, 0.1)
        found.append((total, *torch.autograd.grad(total, given)))
    assert len(multiplied) == 3
    for mine, theirs in zip(*found, strict=True):
        assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_are_left_to_torch(small, dtype):
    assert not takes(torch.ones(2, 2, dtype=dtype), torch.ones(2, 2, dtype=dtype))


def test_small_and_empty_products_are_left_to_torch(monkeypatch):
    monkeypatch.setattr(products, "has_fast_onednn", lambda: True)
    assert takes(torch.ones(1 << 12, 1 << 6), torch.ones(1 << 6, 1 << 6))
    assert not takes(torch.ones((1 << 12) - 1, 1 << 6), torch.ones(1 << 6, 1 << 6))
    assert linear(torch.ones(0, 8), torch.ones(3, 8)).shape == (0, 3)


def test_a_program_that_counts_operations_counts_the_product(multiplied):
    with FlopCounterMode(display=False) as counter:
        linear(torch.ones(5, 8), torch.ones(3, 8))
    assert counter.get_total_flops() == 2 * 5 * 8 * 3
    assert not multiplied


@pytest.mark.parametrize(
    ("instructions", "maker", "fast"),
    [("AVX512", "AuthenticAMD", True), ("AVX512", "GenuineIntel", False), ("AVX2", "AuthenticAMD", False)],
)
def test_onednn_is_used_where_mkl_leaves_instructions_unused(monkeypatch, tmp_path, instructions, maker, fast):
    told = tmp_path / "cpuinfo"
    told.write_text(f"processor\t: 0\nvendor_id\t: {maker}\n")
    monkeypatch.setattr(products, "PROCESSORS", told)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: instructions)
    for function in ("has_onednn", "_is_of_amd"):
        monkeypatch.setattr(products, function, getattr(products, function).__wrapped__)
    assert has_fast_onednn.__wrapped__() == fast


@pytest.mark.parametrize(
    ("instructions", "maker", "shape", "rows"),
    [
        ("AVX512", "AuthenticAMD", (512, 256), range(1, sys.maxsize)),
        ("AVX512", "AuthenticAMD", (128, 256), range(4, sys.maxsize)),
        ("AVX512", "GenuineIntel", (512, 256), range(2, 25)),
        ("AVX512", "GenuineIntel", (511, 256), range(0)),
        ("AVX2", "AuthenticAMD", (1024, 256), range(2, 25)),
        ("AVX2", "AuthenticAMD", (1023, 256), range(0)),
        ("AVX2", "GenuineIntel", (1024, 256), range(0)),
    ],
)
def test_a_search_multiplies_these_numbers_of_rows_by_onednn(monkeypatch, tmp_path, instructions, maker, shape, rows):
    told = tmp_path / "cpuinfo"
    told.write_text(f"vendor_id\t: {maker}\n")
    monkeypatch.setattr(products, "PROCESSORS", told)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: instructions)
    for function in ("has_onednn", "has_fast_onednn", "_fewest_weights", "_is_of_amd"):
        monkeypatch.setattr(products, function, getattr(products, function).__wrapped__)
    assert products.rows_by_blocks(torch.empty(shape)) == rows


@pytest.mark.parametrize(
    ("of_amd", "outputs", "dtype", "by_input"),
    [
        (True, 9, torch.float32, True),
        (True, 8, torch.float32, True),
        (True, 7, torch.float32, False),
        (False, 7, torch.float32, True),
        (False, 9, torch.bfloat16, False),
    ],
)
def test_torchs_product_of_a_search_has_the_faster_of_two_layouts(monkeypatch, of_amd, outputs, dtype, by_input):
    monkeypatch.setattr(products, "_is_of_amd", lambda: of_amd)
    for device in ("cpu", "meta"):
        weight = torch.empty(outputs, 8, dtype=dtype, device=device)
        assert products.prefers_input(weight) == (by_input or device == "meta")


def test_rows_choose_the_library_and_not_the_result(multiplied, monkeypatch):
    monkeypatch.setattr(products, "rows_by_blocks", lambda weight: range(2, 4))
    torch.manual_seed(0)
    layer, layouts = Linear(8, 10), Layouts()
    for rows, by_blocks in ((1, 0), (2, 1), (3, 1), (4, 0)):
        multiplied.clear()
        x = torch.randn(rows, 1, 8)
        with layouts.in_use(), torch.inference_mode():
            said = layer(x)
        assert len(multiplied) == by_blocks
        assert_close(said, F.linear(x, layer.weight, layer.bias), rtol=1e-5, atol=1e-5)


def test_a_system_that_does_not_tell_its_processor_keeps_torchs_product(monkeypatch, tmp_path):
    monkeypatch.setattr(products, "PROCESSORS", tmp_path / "missing")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    for function in ("has_onednn", "_is_of_amd"):
        monkeypatch.setattr(products, function, getattr(products, function).__wrapped__)
    assert not has_fast_onednn.__wrapped__()
