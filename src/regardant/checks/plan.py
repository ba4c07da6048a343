"""Before training: what it will cost. Everything but the wall time is exact or measured on the largest batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from regardant.tasks.base import TaskJob
from regardant.training.config import TRAINING_SHARE, TrainingConfig
from regardant.training.devices import memory_guard
from regardant.training.engine import dry_run
from regardant.training.probes import HINDRANCE, Decisions, as_one_of
from regardant.training.reporting import memory

OVERHEAD = 1.05
"""Of an update over the forward and backward of its batches (optimizer, average, reading); 1.04 measured on `tiny`."""

HOLES = 1.35
"""What a CPU's heap comes to hold over what a batch has in use at a time: blocks of other sizes leave holes. 1.1 to 1.6
after 200 updates of five recipes; twice as much after thousands of `translation`."""


@dataclass(frozen=True)
class Plan:
    """What a run will cost."""

    parameters: int
    memory_bytes: int
    """Peak of all processes."""
    flops_per_token: float
    """Of one target token with its share of what is read for it, forward and backward."""
    tokens_per_epoch: int
    """Target tokens."""
    tokens_per_second: float
    """Target tokens of training."""
    seconds: float
    """Expected for training and validation."""
    updates: int
    epochs: float
    padding: dict[str, float]
    """The share of padding in the blocks of each side, where there are any."""

    def as_dict(self) -> dict[str, Any]:
        """For --json, the padding of a side as SIDE_padding."""
        numbers = asdict(self)
        return numbers | {f"{side}_padding": share for side, share in numbers.pop("padding").items()}

    def lines(self) -> list[str]:
        """For people."""
        padding = ", ".join(f"{share:.1%} of the {side} blocks" for side, share in self.padding.items())
        return [
            f"parameters      {self.parameters:,}",
            f"memory          {self.memory_bytes / 2**30:.2f} GiB at the peak",
            f"computing       {self.flops_per_token / 1e6:,.1f} MFLOP a target token, "
            f"{self.tokens_per_second:,.0f} target tokens a second",
            *([f"padding         {padding}"] if padding else []),
            f"training        {self.updates:,} updates, {self.epochs:.1f} passes over {self.tokens_per_epoch:,} tokens",
            f"expected time   {_told(self.seconds)}",
        ]


def tokens_per_second(job: TaskJob, decisions: Decisions, device: torch.device) -> float:
    """Target tokens of training a second, from batches of the lengths there are."""
    planned = job.batches.typical()
    processes = decisions.processes
    with _autocast(decisions, device), as_one_of(processes):
        seconds = sum(min(dry_run(job, batch, device, processes) for _ in range(3)) for batch in planned)
    overhead = OVERHEAD if processes == 1 else OVERHEAD * HINDRANCE
    return sum(job.load(batch).target_tokens for batch in planned) / (overhead * seconds)


def plan_training(
    job: TaskJob, training: TrainingConfig, decisions: Decisions, speed: float, device: torch.device, resident: int
) -> Plan:
    """Run the largest batches once, beside all that training holds; reckon the rest. Raises OutOfMemory with advice.

    `resident` is what the process held in bytes before the first batch.
    """
    advice = (
        f"lower training.batch_tokens ({training.batch_tokens}) and raise training.accumulate, or take a smaller model"
    )
    with (
        memory_guard("the largest batch", advice),
        _autocast(decisions, device),
        _as_in_training(job.model, training) as held,
    ):
        for batch in job.batches.largest():
            dry_run(job, batch, device)
        job.rehearse_validation(device)
    parameters = sum(parameter.numel() for parameter in job.model.parameters())
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else memory().peak
    activations = max(0, peak - resident - held) * (1 if device.type == "cuda" else HOLES)
    of_each = int(resident + held + activations / decisions.processes)
    tokens, updates_per_epoch = job.target_tokens, job.updates_per_epoch
    updates = training.updates(updates_per_epoch, tokens / updates_per_epoch / speed)
    return Plan(
        parameters=parameters,
        memory_bytes=max(peak, of_each) + (decisions.processes - 1) * of_each,
        flops_per_token=_flops_per_token(job, device),
        tokens_per_epoch=tokens,
        tokens_per_second=speed,
        seconds=updates * tokens / updates_per_epoch / speed / TRAINING_SHARE,
        updates=updates,
        epochs=updates / updates_per_epoch,
        padding=job.batches.padding(),
    )


@contextmanager
def _as_in_training(model: nn.Module, training: TrainingConfig) -> Iterator[int]:
    """With the optimizer's state and the average in place; gives the bytes of these and of the gradients."""
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in learned:
        parameter.grad = torch.zeros_like(parameter)
    optimizers = training.optimizer.build(model)
    for optimizer in optimizers:
        optimizer.step()  # along gradients of zero, at rate zero: no weight changes
    model.zero_grad(set_to_none=True)
    average = training.averaging.build(model)
    average.fill(model)
    states = [state for optimizer in optimizers for state in optimizer.state.values()]
    held = [*learned, *average.held(), *(tensor for state in states for tensor in state.values())]
    yield sum(tensor.nbytes for tensor in held)


def _flops_per_token(job: TaskJob, device: torch.device) -> float:
    planned = job.batches.middling()
    with FlopCounterMode(display=False) as counter:
        dry_run(job, planned, device)
    return counter.get_total_flops() / job.load(planned).target_tokens


def _autocast(decisions: Decisions, device: torch.device) -> torch.autocast:
    return torch.autocast(device.type, torch.bfloat16, enabled=decisions.precision == "bfloat16")


def _told(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
