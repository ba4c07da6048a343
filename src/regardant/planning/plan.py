"""The cost of a training run before it starts. All but the wall time is exact or measured on the largest batch."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from regardant.planning.busy import BUSY, Waiting
from regardant.planning.compilation import compiling_pays
from regardant.planning.flops import flop_counter
from regardant.planning.probes import (
    HINDRANCE,
    Decisions,
    Steps,
    decide,
    dry_run,
    finished_at,
    least,
    threads_of_one,
    time_to_measure,
    use_kernel,
)
from regardant.planning.step_times import StepTimes
from regardant.tasks.base import Log, Prepared, TaskJob
from regardant.training.averaging import Average
from regardant.training.calm import Calm
from regardant.training.config import COPIES, TRAINING_SHARE, Strategy, TrainingConfig
from regardant.training.devices import NO_BFLOAT16, memory_guard, multiplies_bfloat16, trim_heap
from regardant.training.engine import require_divisible
from regardant.training.lora import merged
from regardant.training.reporting import memory

OVERHEAD = 1.05
"""Ratio of the time of forward and backward in training to that of the fastest dry run of a batch: 1.04 to 1.06 on
`reverse`, `demo` and `digits-vit`, in CPU time of one thread."""

GATHERING = 2.4
"""Ratio of the time of an fsdp step on a CPU, in which each process gathers the weights of every sublayer, to that of a
replica: 2.2 to 2.8 at d_model 128 to 512 on two cores."""

HOLES = 1.35
"""Ratio of the heap on a CPU to the memory that a batch uses, because of fragmentation: 1.1 to 1.6 after 200 updates of
five recipes; longer trainings were not measured. None where freed memory is returned."""


@dataclass(frozen=True)
class Plan:
    """The cost of a training run."""

    parameters: int
    memory_bytes: int
    """Peak memory of all processes together."""
    flops_per_token: float
    """Floating-point operations of one target with its share of the input, forward and backward."""
    tokens_per_epoch: int
    """Targets in an epoch, counted in `unit`."""
    tokens_per_second: float
    """Targets trained on per second."""
    seconds: float
    """Expected time of training and validation."""
    updates: int
    epochs: float
    padding: dict[str, float]
    """Share of padding by side. Empty if no batch is padded."""
    unit: str
    """Singular name of a target, as "target token"."""
    validation_targets: int | None = None
    """Number of targets of a validation, if the budget may leave a part of the data out."""

    def as_dict(self) -> dict[str, Any]:
        """Return the content of --json, with the padding of a side as SIDE_padding."""
        numbers = asdict(self)
        return numbers | {f"{side}_padding": share for side, share in numbers.pop("padding").items()}

    def lines(self) -> list[str]:
        """Return the lines to print."""
        padding = ", ".join(f"{share:.1%} of the {side} blocks" for side, share in self.padding.items())
        return [
            f"parameters      {self.parameters:,}",
            f"memory          {self.memory_bytes / 2**30:.2f} GiB at the peak",
            f"computing       {self.flops_per_token / 1e6:,.2f} MFLOP per {self.unit}, "
            f"{self.tokens_per_second:,.0f} {self.unit}s per second",
            *([f"padding         {padding}"] if padding else []),
            f"training        {self.updates:,} updates, {self.epochs:.1f} passes over {self.tokens_per_epoch:,} "
            f"{self.unit}s",
            f"expected time   {_format_seconds(self.seconds)}",
        ]


def plan_run(
    prepared: Prepared,
    device: torch.device,
    log: Log,
    strategy_of: Callable[[int], Strategy] = lambda processes: "sum",
    launched: int = 1,
) -> tuple[Decisions, Plan]:
    """Choose the settings that depend on timing, then measure the cost of training.

    `strategy_of` returns the strategy by which a number of processes shares the model. `launched` is the number of
    processes that torchrun has started, each of which plans as if it were alone.

    Raises OutOfMemory with advice if the largest batch does not fit, and ConfigError if the batch of an indivisible
    loss would be divided.
    """
    job, training = prepared.job, prepared.config.training
    _forget_peak()
    if training.precision == "bfloat16" and not multiplies_bfloat16(device):
        log(f"{NO_BFLOAT16}: leave training.precision out")
    training.optimizer.build(job.model)  # the first optimizer loads 70 MB of torch, in each process
    resident = memory().current
    with memory_guard("a batch", "take a smaller model, or lower training.batch_tokens and raise training.accumulate"):
        until, waited = time.perf_counter() + time_to_measure(training), Waiting()
        decisions = _decide(job, training, device, until, log)
        count = max(decisions.processes, launched)
        decisions = replace(decisions, strategy=strategy_of(count))
        decisions.apply(job.model)  # time and measure the settings that training will use
        log(decisions.summary())
        targets, seconds = sample_of_training(job, decisions, device, until)
        shares = count if decisions.strategy == "fsdp" else 1
        if shares == 1:  # else an optimizer for the whole model may not fit
            with threads_of_one(decisions.processes):
                step = optimizer_seconds(job.model, training, device, until)
            seconds += len(job.batches.sample_batches()) * step / training.accumulate
        speed = targets / seconds
        resolved = prepared.with_speed(speed, log).training
        if device.type == "cpu" and (note := waited.note(in_minutes=resolved.max_minutes is not None)):
            log(note)
        return decisions, plan_training(job, resolved, decisions, speed, device, resident, shares)


def _decide(job: TaskJob, training: TrainingConfig, device: torch.device, until: float, log: Log) -> Decisions:
    if not job.divisible:
        processes = 1 if training.processes == "auto" else training.processes
        require_divisible(job, accumulate=training.accumulate, processes=processes)
        training = training.replaced(processes=processes)
    train_step = partial(dry_run, job, job.batches.median_batch(), device)
    waited, earlier = Waiting(), StepTimes.of(job)
    steps = Steps(job.model, train_step, device, until, log, earlier.seconds)
    decisions = decide(steps, training, job.updates_per_epoch)
    # A run that reused all times has timed nothing that other programs could disturb.
    if waited.share() < BUSY or earlier.hold(decisions.seconds):
        earlier.keep(steps.without_cold(decisions.seconds), log)
    if training.compile:
        decisions = replace(decisions, compiled=compiling_pays(job.model, train_step, decisions, device, log))
    return decisions


def sample_of_training(job: TaskJob, decisions: Decisions, device: torch.device, until: float) -> tuple[int, float]:
    """Return the number of targets of batches of all lengths, and the seconds that their gradients take in training.

    Each batch is timed only once after the clock reads `until`. On an accelerator an untimed step of each comes first,
    in which kernels are compiled for its shape.
    """
    planned = job.batches.sample_batches()
    processes = decisions.processes
    with decisions.autocast(device), threads_of_one(processes):
        if device.type == "cuda":
            for batch in planned:
                dry_run(job, batch, device, processes)
        seconds = sum(least(partial(dry_run, job, batch, device, processes), until) for batch in planned)
    overhead = OVERHEAD if processes == 1 else OVERHEAD * HINDRANCE
    if decisions.strategy == "fsdp" and device.type == "cpu":
        overhead *= GATHERING
    return sum(job.load(batch).count for batch in planned), overhead * seconds


def optimizer_seconds(model: nn.Module, training: TrainingConfig, device: torch.device, until: float) -> float:
    """Return the seconds of an update after its gradients: clipping, the optimizer step and weight averaging.

    They depend on the optimizer and the weights, not on the batch, and are no small share of an update with Muon.
    Only the first round may begin after the clock reads `until`.
    """
    with _stepping(model, training) as (optimizers, average):
        parameters = [parameter for parameter in model.parameters() if parameter.grad is not None]

        def step() -> float:
            start = finished_at(device)
            clip_grad_norm_(parameters, training.clip_norm or math.inf)
            for optimizer in optimizers:
                optimizer.step()
            average.update(model)
            return finished_at(device) - start

        return least(step, until)


def plan_training(
    job: TaskJob,
    training: TrainingConfig,
    decisions: Decisions,
    speed: float,
    device: torch.device,
    resident: int,
    shares: int = 1,
) -> Plan:
    """Measure the memory of the largest batches, with the optimizer's state in place, and compute the rest of the plan.

    `speed` is in targets per second, `resident` the memory of the process in bytes before the first batch, `shares` the
    number of processes that shard the model. Raises OutOfMemory with advice.
    """
    advice = (
        f"lower training.batch_tokens ({training.batch_tokens}) and raise training.accumulate, or take a smaller model"
    )
    with (
        memory_guard("the largest batch", advice),
        decisions.autocast(device),
        _as_in_training(job.model, training, shares) as held,
    ):
        for batch in job.batches.largest_batches():
            dry_run(job, batch, device)
        with merged(job.model):
            job.warm_up_validation(device)
    parameters = sum(parameter.numel() for parameter in job.model.parameters())
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else memory().peak
    activations = max(0, peak - resident - held) * (1 if device.type == "cuda" or shares > 1 else HOLES)
    state = held if shares == 1 else COPIES * held / shares
    of_each = int(resident + state + activations / decisions.processes)
    targets, updates_per_epoch = job.targets_per_epoch, job.updates_per_epoch
    updates = training.updates(updates_per_epoch, targets / updates_per_epoch / speed)
    return Plan(
        parameters=parameters,
        memory_bytes=max(peak, of_each) + (decisions.processes - 1) * of_each,
        flops_per_token=_flops_per_target(job, decisions, device),
        tokens_per_epoch=targets,
        tokens_per_second=speed,
        seconds=updates * targets / updates_per_epoch / speed / TRAINING_SHARE,
        updates=updates,
        epochs=updates / updates_per_epoch,
        padding=job.batches.padding(),
        unit=job.unit,
        validation_targets=job.validation_targets,
    )


@contextmanager
def _as_in_training(model: nn.Module, training: TrainingConfig, shares: int = 1) -> Iterator[int]:
    """Allocate the optimizer's state, the average and the snapshot of `spike_factor`, and yield the bytes of all three
    and of the weights.

    A sharded model may have no room for them in one process: then the bytes are those of the weights only.
    """
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if shares > 1:
        yield sum(parameter.nbytes for parameter in learned)
        return
    with _stepping(model, training) as (optimizers, average):
        model.zero_grad(set_to_none=True)
        average.fill(model)
        calm = Calm(model, optimizers, average)
        if training.spike_factor is not None:
            calm.keep()
        states = [state for optimizer in optimizers for state in optimizer.state.values()]
        held = [*learned, *average.held(), *(tensor for state in states for tensor in state.values())]
        yield sum(tensor.nbytes for tensor in held) + calm.nbytes()


@contextmanager
def _stepping(model: nn.Module, training: TrainingConfig) -> Iterator[tuple[list[Optimizer], Average]]:
    """Yield optimizers with their state allocated and gradients of zero, and the average. No step changes a weight: the
    gradients and the learning rate are zero."""
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
    optimizers = training.optimizer.build(model)
    for optimizer in optimizers:
        optimizer.step()
    try:
        yield optimizers, training.averaging.build(model)
    finally:
        model.zero_grad(set_to_none=True)


def _flops_per_target(job: TaskJob, decisions: Decisions, device: torch.device) -> float:
    """Return the operations of a median batch per target. They are counted with `sdpa`, whichever kernel is chosen:
    operations of `triton` are not seen, and tiled kernels skip some."""
    planned = job.batches.median_batch()
    use_kernel(job.model, "sdpa")
    with flop_counter() as counter:
        dry_run(job, planned, device)
    use_kernel(job.model, decisions.kernel)
    return counter.get_total_flops() / job.load(planned).count


def _forget_peak() -> None:
    """Reset the peak of memory, so that memory freed by an earlier model of this process does not count."""
    trim_heap()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return
    with suppress(OSError):  # not on every system
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
