import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regardant.layers import label_smoothed_cross_entropy as module
from regardant.layers.label_smoothed_cross_entropy import projected_cross_entropy
from regardant.layers.rounded_rows import round_up

D_MODEL, VOCAB_SIZE = 8, 23

smoothings = pytest.mark.parametrize("label_smoothing", [0.0, 0.1])


def tensors(num_tokens, dtype=torch.float32):
    generator = torch.Generator().manual_seed(num_tokens)
    vectors, weight = (
        torch.randn(n, D_MODEL, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for n in (num_tokens, VOCAB_SIZE)
    )
    return vectors, weight, torch.randint(VOCAB_SIZE, (num_tokens,), generator=generator)


def reference(vectors, weight, targets, label_smoothing):
    return F.cross_entropy(vectors @ weight.T, targets, label_smoothing=label_smoothing, reduction="sum")


@smoothings
@pytest.mark.parametrize("num_tokens", [1, 6, 7, 8, 14, 20, 21])
def test_in_chunks_it_equals_the_whole_in_loss_and_gradients(monkeypatch, num_tokens, label_smoothing):
    monkeypatch.setattr(module, "SMALLEST_CHUNK", 7)
    monkeypatch.setattr(module, "CHUNK_BYTES", 8)
    vectors, weight, targets = tensors(num_tokens)
    smoothed, plain = projected_cross_entropy(vectors, weight, targets, label_smoothing)
    expected = reference(vectors, weight, targets, label_smoothing)
    assert_close(smoothed, expected, rtol=1e-5, atol=1e-5)
    assert_close(plain, reference(vectors, weight, targets, 0.0).detach(), rtol=1e-5, atol=1e-5)
    # A factor, as the trainer divides by the number of tokens.
    found = torch.autograd.grad(smoothed * 0.25, (vectors, weight))
    assert_close(found, torch.autograd.grad(expected * 0.25, (vectors, weight)), rtol=1e-5, atol=1e-5)


@smoothings
def test_its_gradient_equals_finite_differences(monkeypatch, label_smoothing):
    monkeypatch.setattr(module, "SMALLEST_CHUNK", 4)
    monkeypatch.setattr(module, "CHUNK_BYTES", 8)
    vectors, weight, targets = tensors(10, torch.float64)
    assert torch.autograd.gradcheck(
        lambda vectors, weight: projected_cross_entropy(vectors, weight, targets, label_smoothing)[0],
        (vectors, weight),
    )


@smoothings
def test_z_loss_is_what_autograd_makes_of_logsumexp(monkeypatch, label_smoothing):
    monkeypatch.setattr(module, "SMALLEST_CHUNK", 7)
    monkeypatch.setattr(module, "CHUNK_BYTES", 8)
    vectors, weight, targets = tensors(20, torch.float64)
    total, plain = projected_cross_entropy(vectors, weight, targets, label_smoothing, z_loss=0.1)
    of_normalisers = 0.1 * torch.logsumexp(vectors @ weight.T, 1).square().sum()
    assert of_normalisers > 0.1 * plain
    expected = reference(vectors, weight, targets, label_smoothing) + of_normalisers
    assert_close(total, expected, rtol=1e-12, atol=0)
    assert_close(plain, reference(vectors, weight, targets, 0.0).detach(), rtol=1e-12, atol=0)
    found = torch.autograd.grad(total * 0.25, (vectors, weight))
    assert_close(found, torch.autograd.grad(expected * 0.25, (vectors, weight)), rtol=1e-10, atol=1e-12)


@smoothings
def test_the_size_of_a_chunk_changes_nothing(monkeypatch, label_smoothing):
    vectors, weight, targets = tensors(600, torch.float64)
    found = []
    for smallest, logits in ((600, 1), (512, 1), (1, 1), (1, 100 * len(weight))):
        monkeypatch.setattr(module, "SMALLEST_CHUNK", smallest)
        monkeypatch.setattr(module, "CHUNK_BYTES", 8 * logits)
        smoothed, _ = projected_cross_entropy(vectors, weight, targets, label_smoothing)
        found.append((smoothed, *torch.autograd.grad(smoothed, (vectors, weight))))
    for other in found[1:]:
        assert_close(other, found[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("num_tokens", [1, 300, 2048, 4096, 4725, 6656])
def test_chunks_are_about_equal_and_their_logits_fit_a_block_that_glibc_keeps(dtype, num_tokens):
    vectors = torch.empty(num_tokens, 2, dtype=dtype)
    size = module._chunk_size(vectors, 8000)
    assert size * 8000 * vectors.element_size() < 32 << 20
    least = -(-num_tokens * 8000 * vectors.element_size() // (32 << 20))
    assert -(-num_tokens // size) <= least + 1  # one more, as numbers of tokens are rounded down
    assert round_up(size) == size


@smoothings
def test_bfloat16_vectors_give_the_weights_a_float32_gradient(label_smoothing):
    vectors, weight, targets = tensors(40)
    narrow = vectors.detach().bfloat16().requires_grad_()
    smoothed, plain = projected_cross_entropy(narrow, weight, targets, label_smoothing)
    assert smoothed.dtype == plain.dtype == torch.float32
    expected = reference(vectors, weight, targets, label_smoothing)
    assert_close(smoothed, expected, rtol=1e-2, atol=0)
    to_vectors, to_weight = torch.autograd.grad(smoothed, (narrow, weight))
    assert to_vectors.dtype == torch.bfloat16 and to_weight.dtype == torch.float32
    wanted_vectors, wanted_weight = torch.autograd.grad(expected, (vectors, weight))
    assert (to_vectors - wanted_vectors).abs().max() < 0.02 * wanted_vectors.abs().max()
    assert (to_weight - wanted_weight).abs().max() < 0.02 * wanted_weight.abs().max()


def test_scores_of_a_thousand_overflow_nothing():
    vectors, weight, targets = tensors(30)
    smoothed, _ = projected_cross_entropy(vectors * 1000, weight, targets, 0.1)
    to_vectors, to_weight = torch.autograd.grad(smoothed, (vectors, weight))
    assert smoothed.isfinite() and to_vectors.isfinite().all() and to_weight.isfinite().all()


def test_no_tokens_cost_nothing():
    vectors, weight, targets = tensors(0)
    smoothed, plain = projected_cross_entropy(vectors, weight, targets, 0.1)
    smoothed.backward()
    assert smoothed == plain == 0 and not weight.grad.any()


def test_the_plain_loss_has_no_gradient():
    _, plain = projected_cross_entropy(*tensors(5), 0.1)
    assert not plain.requires_grad


def test_a_second_derivative_is_refused_and_not_wrong():
    vectors, weight, targets = tensors(5)
    smoothed, _ = projected_cross_entropy(vectors, weight, targets, 0.0)
    (gradient,) = torch.autograd.grad(smoothed**2, vectors, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_without_gradients_none_is_computed(monkeypatch, context):
    """A parameter could have a gradient, and an evaluation needs none: it multiplies once."""
    monkeypatch.setattr(module.products, "gradient_of_weight", lambda *given: pytest.fail("a gradient of weights"))
    vectors, weight, targets = tensors(8)
    with context():
        total, plain = projected_cross_entropy(vectors, weight, targets, 0.1)
        assert_close(total, reference(vectors, weight, targets, 0.1))
        assert_close(plain, reference(vectors, weight, targets, 0.0))
    assert not total.requires_grad
