"""Gradients that processes average are those of one process, also if a batch has no row for some of them."""

from contextlib import nullcontext

import pytest
import torch

from regardant.training.gradients import add_gradients
from regardant.training.processes import ALONE, Group
from tests.unit.training.test_engine import TinyJob

CPU = torch.device("cpu")


def gradients(group, unsent=None):
    """The gradients of three batches, of which the second has one row, by parameter."""
    job = TinyJob(batches=3)
    job.batches[1] = job.batches[1][:1]
    add_gradients(
        [job.load(number) for number in range(3)],
        lambda batch: job.loss(job.model, batch, CPU),
        lambda loss: loss.backward(),
        key=job.model.dropout_key,
        device=CPU,
        group=group,
        unsent=unsent,
    )
    return [parameter.grad for parameter in job.model.parameters()]


@pytest.mark.parametrize("size", [2, 3])
def test_the_mean_over_processes_is_the_gradient_of_one(size):
    ranks = [gradients(Group(rank, size), nullcontext) for rank in range(size)]
    means = [torch.stack(grads).mean(0) for grads in zip(*ranks, strict=True)]
    torch.testing.assert_close(means, gradients(ALONE), rtol=0, atol=1e-6)  # sums in another order
