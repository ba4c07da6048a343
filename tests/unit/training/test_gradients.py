"""Gradients that processes average are those of one process, also if a batch has no row for some of them; and the file
that keeps those that are not finite."""

from contextlib import nullcontext

import pytest
import torch

from regardant.data.windows import StreamBatch
from regardant.models.representations.joined import Blocks
from regardant.training.checkpoints import load_checkpoint
from regardant.training.gradients import add_gradients, save_for_study
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


def test_every_kind_of_batch_is_kept_for_study(tmp_path):
    streams = StreamBatch(torch.arange(6).view(2, 3), True, slice(0, 2))
    parts = Blocks([torch.ones(2, 3), torch.zeros(2, 1)], [[3, 1], [2, 1]])
    save_for_study(tmp_path / "kept.pt", [streams, {"input": parts}], {"weight": torch.ones(1)}, update=7)
    kept = load_checkpoint(tmp_path / "kept.pt")
    first, second = kept["batches"]
    assert kept["update"] == 7 and torch.equal(first["tokens"], streams.tokens) and "slice(0, 2" in first["streams"]
    assert torch.equal(second["input"]["parts"][0], parts.parts[0])
    assert second["input"]["lengths"] == [[3, 1], [2, 1]]
