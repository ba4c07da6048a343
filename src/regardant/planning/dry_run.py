"""One training step without an update, to time it or to see what it takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from regardant.training.job import Batch, Job


def dry_run(
    job: Job, planned: Any, device: torch.device, processes: int = 1, through: nn.Module | None = None
) -> float:
    """Run forward and backward on one process's part of a batch and return the seconds that it took.

    `through` is the job's model compiled, if it is. No gradient is left behind.
    """
    start = _finished_at(device)
    batch: Batch = job.load(planned)
    loss = job.loss(job.model if through is None else through, batch.part(0, processes), device)
    loss.total.backward()
    job.model.zero_grad(set_to_none=True)
    return _finished_at(device) - start


@contextmanager
def threads_of_one(processes: int) -> Iterator[None]:
    """Compute with the threads that each of so many processes has."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads // processes))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _finished_at(device: torch.device) -> float:
    """Return the clock after all work that was queued on the device."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()
