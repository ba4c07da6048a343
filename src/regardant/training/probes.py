"""What is decided by measuring the machine: precision, attention kernel, processes. The answer is kept in the run."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from statistics import median
from typing import Any, Self

import torch
import torch.distributed as dist
from torch import nn

from regardant.attention import KERNELS, ScaledDotProduct
from regardant.errors import ConfigError
from regardant.training.config import Kernel, Precision, TrainingConfig
from regardant.training.devices import multiplies_bfloat16

SIMPLEST_PRECISION_FIRST: tuple[Precision, ...] = ("float32", "bfloat16")
SIMPLEST_KERNEL_FIRST: tuple[Kernel, ...] = ("matmul", "sdpa")

NEAR_TIE = 1.1
"""What is no slower than this counts as fast: the same machine should decide alike twice, whatever else it does."""

HINDRANCE = 1.1
"""What processes beside each other take over one alone: sums of gradients, and a memory that they share."""

LONG = 60.0
"""Seconds of training for which it pays to start more processes, each of which has to read the corpus first."""


@dataclass(frozen=True)
class Decisions:
    """What a resumed run must not decide anew."""

    precision: Precision
    kernel: Kernel
    threads: int
    """Of all processes together."""
    seconds: dict[str, float] = field(default_factory=dict)
    """What each candidate took for a training step of a middling batch."""
    processes: int = 1

    def as_dict(self) -> dict[str, Any]:
        """For run.yaml."""
        return asdict(self)

    @classmethod
    def from_dict(cls, decided: dict[str, Any]) -> Self:
        """From run.yaml."""
        return cls(**decided)

    def apply(self, model: nn.Module) -> None:
        """Make the model and the process run as decided."""
        torch.set_num_threads(self.threads)
        use_kernel(model, self.kernel)

    def told(self) -> str:
        """One line for people."""
        line = f"precision {self.precision}, attention kernel {self.kernel}, {self.threads} threads"
        if self.processes > 1:
            line += f" in {self.processes} processes"
        if not self.seconds:
            return line
        return f"{line} (measured: {', '.join(f'{name} {1000 * s:.0f} ms' for name, s in self.seconds.items())})"


def use_kernel(model: nn.Module, kernel: Kernel) -> None:
    """Have all exact attention of a model computed by this kernel."""
    for module in model.modules():
        if isinstance(module, ScaledDotProduct):
            module.kernel = KERNELS[kernel]


def decide(
    model: nn.Module, train_step: Callable[[], object], config: TrainingConfig, device: torch.device
) -> Decisions:
    """Time a training step in every allowed precision with every kernel; the fastest wins, a near tie the simplest.

    `train_step` runs forward and backward and leaves no gradients behind.
    """
    precisions = _precisions(config, device)
    kernels = SIMPLEST_KERNEL_FIRST if config.attention_kernel == "auto" else (config.attention_kernel,)
    threads = torch.get_num_threads()
    if device.type == "cuda":  # flash attention and bfloat16 are what such a machine is built for
        return Decisions(precisions[-1], kernels[-1], threads)
    if len(precisions) == len(kernels) == 1:
        return Decisions(precisions[0], kernels[0], threads)
    seconds: dict[tuple[Precision, Kernel], float] = {}
    for precision in precisions:
        for kernel in kernels:
            use_kernel(model, kernel)
            with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
                seconds[precision, kernel] = _seconds_of(train_step)
    fastest = min(seconds.values())
    best = next(pair for pair, value in seconds.items() if value <= NEAR_TIE * fastest)
    return Decisions(*best, threads, seconds={"/".join(pair): round(value, 4) for pair, value in seconds.items()})


def _precisions(config: TrainingConfig, device: torch.device) -> tuple[Precision, ...]:
    narrow = multiplies_bfloat16(device)
    if config.precision == "auto":  # what has to be converted is not even worth its timing
        return SIMPLEST_PRECISION_FIRST if narrow else ("float32",)
    return (config.precision,)


def divide(
    decisions: Decisions,
    train_step: Callable[[int], object],
    config: TrainingConfig,
    updates_per_epoch: int,
    device: torch.device,
) -> Decisions:
    """Decide on processes too: several, each with its share of the threads, where that is faster by more than a tie.

    `train_step(parts)` trains on so manieth of a batch. What several would hinder each other in is reckoned, since they
    are not started for this. Raises ConfigError where an accelerator computes and several are asked for.
    """
    if device.type == "cuda":
        if config.processes not in ("auto", 1):
            raise ConfigError("training.processes divides the cores of a CPU, and here is an accelerator: leave it out")
        return decisions
    if config.processes != "auto":
        return replace(decisions, processes=config.processes)
    threads = decisions.threads
    candidates = [n for n in (2, 4, 8) if threads % n == 0]
    if not candidates or not dist.is_gloo_available():
        return decisions
    with torch.autocast(device.type, torch.bfloat16, enabled=decisions.precision == "bfloat16"):
        seconds = {1: _seconds_of(lambda: train_step(1))}
        if not _is_long(config, updates_per_epoch, seconds[1]):
            return decisions
        for count in candidates:
            with as_one_of(count):
                seconds[count] = HINDRANCE * _seconds_of(partial(train_step, count))
    fastest = min(seconds.values())
    best = next(count for count, value in seconds.items() if value <= NEAR_TIE * fastest)
    measured = {f"{count} processes": round(value, 4) for count, value in seconds.items() if count > 1}
    return replace(decisions, processes=best, seconds=decisions.seconds | measured)


@contextmanager
def as_one_of(processes: int) -> Iterator[None]:
    """With the threads that one of so many processes has."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads // processes))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _is_long(config: TrainingConfig, updates_per_epoch: int, seconds: float) -> bool:
    """Whether training takes longer than starting processes pays for."""
    if config.max_minutes == "auto" and not (config.max_updates or config.max_epochs):
        return True
    per_update = config.accumulate * seconds
    return per_update * config.updates(updates_per_epoch, per_update) > LONG


def _seconds_of(step: Callable[[], object], repeats: int = 3) -> float:
    step()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return median(taken)
