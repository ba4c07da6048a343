import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.attention.scaled_dot_product import sdpa

from . import interpreted

pytestmark = pytest.mark.xdist_group("kernels")  # one process interprets


def inputs(num_queries, num_keys, key_size, value_size, dtype=torch.float32, rows=2, heads=3):
    """Return queries, keys, values and a gradient as projections leave them: heads beside each other."""
    generator = torch.Generator().manual_seed(num_queries)
    sizes = ((num_queries, key_size), (num_keys, key_size), (num_keys, value_size), (num_queries, value_size))
    made = [torch.randn(rows, length, heads, size, generator=generator).to(dtype) for length, size in sizes]
    return [one.transpose(1, 2) for one in made]


CASES = {
    "causal": (5, 5, 8, 8, True, False),
    "padded": (17, 33, 24, 16, False, True),
    "causal and padded": (70, 70, 64, 64, True, True),
    "the last queries": (3, 9, 16, 16, True, False),
    "everything": (3, 9, 16, 16, False, False),
    "two blocks of queries": (65, 128, 16, 32, False, True),
}


@pytest.mark.parametrize("case", CASES)
def test_it_computes_exact_attention_and_its_gradients(interpret, case):
    num_queries, num_keys, key_size, value_size, causal, padded = CASES[case]
    q, k, v, gradient = inputs(num_queries, num_keys, key_size, value_size)
    real = torch.rand(2, num_keys, generator=torch.Generator().manual_seed(1)) > 0.3 if padded else None
    found = interpret(interpreted.attention, q, k, v, real, 0.3, causal, gradient)
    wide = [x.double().requires_grad_() for x in (q, k, v)]
    allowed = torch.ones(2, 1, num_queries, num_keys, dtype=torch.bool)
    if causal:
        allowed = allowed.tril(num_keys - num_queries)
    if real is not None:
        allowed = allowed & real[:, None, None]
    weights = torch.softmax((wide[0] @ wide[1].mT * 0.3).masked_fill(~allowed, -1e9), -1) * allowed
    mixed = weights @ wide[2]
    expected = [mixed, *torch.autograd.grad(mixed, wide, gradient.double())]
    for mine, right in zip(found, expected, strict=True):
        assert_close(mine.double(), right.detach(), rtol=1e-4, atol=1e-5)  # float32


def test_a_query_without_a_key_gets_zeros_and_teaches_nothing(interpret):
    q, k, v, gradient = inputs(4, 6, 8, 8)
    real = torch.tensor([[False] * 6, [True] * 6])
    mixed, *gradients = interpret(interpreted.attention, q, k, v, real, 0.3, False, gradient)
    assert not mixed[0].any() and mixed[1].all()
    assert all(not one[0].any() and one[1].any() for one in gradients)


def test_a_mask_may_have_any_strides(interpret):
    q, k, v, gradient = inputs(4, 6, 8, 8)
    rows = torch.tensor([[True] * 4 + [False] * 2, [False] * 3 + [True] * 3])
    expanded = rows[:1].expand(2, 6)  # contiguous memory would have the second of the rows behind the first
    by_key = rows.T.contiguous().T
    for real in (expanded, by_key):
        found = interpret(interpreted.attention, q, k, v, real, 0.3, False, gradient)
        right = interpret(interpreted.attention, q, k, v, real.contiguous(), 0.3, False, gradient)
        for mine, other in zip(found, right, strict=True):
            assert_close(mine, other)


@pytest.mark.parametrize(
    ("view", "num_keys", "dtype", "ran"),
    [
        (View(causal=True), 9, torch.float16, 1),
        (View(keys=torch.arange(9)[None] < torch.tensor([[4], [9]])), 9, torch.float16, 1),
        (View(pairs=torch.ones(1, 1, 9, 9, dtype=torch.bool).tril(1)), 9, torch.float16, 0),
        (View(), 129, torch.float16, 0),
        (View(), 9, torch.float32, 0),
    ],
)
def test_it_runs_on_few_keys_in_narrow_numbers_under_masks_that_it_knows(interpret, view, num_keys, dtype, ran):
    q, k, v, _ = inputs(9, num_keys, 16, 16, dtype)
    mixed, asked = interpret(interpreted.mechanism, q, k, v, view)
    assert asked == ran
    expected = sdpa(*(x.float() for x in (q, k, v)), view, 0.5)
    assert_close(mixed.float(), expected, rtol=2e-3, atol=2e-3)  # float16 has 11 bits
