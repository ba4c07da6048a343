import torch
from torch.testing import assert_close

from regardant.attention.chunks import in_chunks

WEIGHT = torch.linspace(0.5, 2, 3).double().requires_grad_()


def running_mean(chunk, carried):
    """Of all vectors so far, times what is learned; hidden ones count nothing."""
    x, real = chunk
    total, count = carried
    sums = total + (x * real).cumsum(2)
    counts = count + real.cumsum(2)
    return WEIGHT * sums / counts, (sums[:, :, -1:], counts[:, :, -1:])


def nothing():
    return torch.zeros(2, 2, 1, 3).double().requires_grad_(), torch.ones(2, 2, 1, 1).double().requires_grad_()


def tensors():
    x = torch.randn(2, 2, 17, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x.requires_grad_(), torch.arange(17)[None, None, :, None] % 3 != 0


def test_chunks_give_and_leave_what_the_whole_does():
    for size in (1, 4, 5, 16):
        given, left = in_chunks(running_mean, tensors(), nothing(), [WEIGHT], size=size)
        assert_close((given, *left), (lambda given, left: (given, *left))(*running_mean(tensors(), nothing())))


def test_every_input_has_the_gradient_that_the_whole_has():
    (x, real), before = tensors(), nothing()
    found = []
    for given, left in (in_chunks(running_mean, (x, real), before, [WEIGHT], size=4), running_mean((x, real), before)):
        loss = given.square().sum() + (left[0] * left[1]).sum()
        found.append(torch.autograd.grad(loss, (x, *before, WEIGHT)))
    assert_close(*found)


def test_nothing_that_a_chunk_needs_inside_is_kept():
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.shape) or x, lambda x: x):
        in_chunks(running_mean, tensors(), nothing(), [WEIGHT], size=4)
    assert sorted(set(kept)) == [(1, 1, 17, 1), (2, 2, 1, 1), (2, 2, 1, 3), (2, 2, 17, 3)]


def test_what_is_frozen_gets_no_gradient_and_takes_none_from_others():
    x, real = tensors()
    frozen, learned = torch.full((3,), 2.0).double(), torch.ones(3).double().requires_grad_()

    def run(chunk, carried):
        return frozen * learned * chunk[0], carried

    given, _ = in_chunks(run, (x, real), nothing(), [frozen, learned], size=4)
    given.sum().backward()
    assert frozen.grad is None
    assert_close(x.grad, torch.full_like(x, 2.0))
    assert_close(learned.grad, 2 * x.detach().sum((0, 1, 2)))
