"""What is decided by measuring the machine: precision, attention kernel, processes. The answer is kept in the run."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self

import torch
import torch.distributed as dist
from torch import nn

from regardant.attention import KERNELS, ScaledDotProduct
from regardant.errors import ConfigError
from regardant.training.config import Kernel, Precision, TrainingConfig
from regardant.training.devices import multiplies_bfloat16

SIMPLEST_PRECISION_FIRST: tuple[Precision, ...] = ("float32", "bfloat16")
SIMPLEST_KERNEL_FIRST: tuple[Kernel, ...] = ("matmul", "sdpa")

ROUNDS = 3
"""Timed steps each way."""

NEAR_TIE = 1.05
"""What is no slower than this counts as fast: the same machine should decide alike twice, whatever else it does."""

HINDRANCE = 1.2
"""What processes beside each other take over one alone: sums of gradients, a memory that they share, and an optimizer
that each runs for itself."""

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
    compiled: bool = False
    """Whether torch.compile was asked for and paid."""

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
        if self.compiled:
            line += ", compiled"
        if not self.seconds:
            return line
        return f"{line} (measured: {', '.join(f'{name} {1000 * s:.0f} ms' for name, s in self.seconds.items())})"


def use_kernel(model: nn.Module, kernel: Kernel) -> None:
    """Have all exact attention of a model computed by this kernel."""
    for module in model.modules():
        if isinstance(module, ScaledDotProduct):
            module.kernel = KERNELS[kernel]


class Way(NamedTuple):
    """One of the ways to train."""

    precision: Precision
    kernel: Kernel
    processes: int

    @property
    def name(self) -> str:
        """As it is told."""
        several = f" in {self.processes} processes" if self.processes > 1 else ""
        return f"{self.precision}/{self.kernel}{several}"


def decide(
    model: nn.Module,
    train_step: Callable[[int], object],
    config: TrainingConfig,
    updates_per_epoch: int,
    device: torch.device,
) -> Decisions:
    """Time a training step in every allowed precision with every kernel, and where training is long enough also with
    its batch divided among processes; the fastest way wins, a near tie the simplest.

    `train_step(processes)` runs forward and backward on one process's part of a batch and leaves no gradients behind.
    What processes would hinder each other in is reckoned, since they are not started for this.

    Raises ConfigError where an accelerator computes and several processes are asked for.
    """
    precisions, threads = _precisions(config, device), torch.get_num_threads()
    kernels = SIMPLEST_KERNEL_FIRST if config.attention_kernel == "auto" else (config.attention_kernel,)
    if device.type == "cuda":  # flash attention and bfloat16 are what such a machine is built for
        if config.processes not in ("auto", 1):
            raise ConfigError("training.processes divides the cores of a CPU, and here is an accelerator: leave it out")
        return Decisions(precisions[-1], kernels[-1], threads)
    processes, more = (1, _divisors(threads)) if config.processes == "auto" else (config.processes, [])
    ways = [Way(precision, kernel, processes) for precision in precisions for kernel in kernels]
    if len(ways) == 1 and not more:
        return Decisions(*ways[0][:2], threads, processes=processes)
    seconds = _seconds_of(ways, model, train_step, device)
    if more and _is_long(config, updates_per_epoch, min(seconds.values())):
        best = [min((way for way in ways if way.precision == one), key=seconds.__getitem__) for one in precisions]
        divided = [way._replace(processes=count) for count in more for way in best]
        took = _seconds_of(divided, model, train_step, device)
        seconds |= {way: HINDRANCE * value for way, value in took.items()}
    fastest = min(seconds.values())
    chosen = next(way for way, value in seconds.items() if value <= NEAR_TIE * fastest)
    told = {way.name: round(value, 4) for way, value in seconds.items()}
    return Decisions(chosen.precision, chosen.kernel, threads, told, chosen.processes)


def _precisions(config: TrainingConfig, device: torch.device) -> tuple[Precision, ...]:
    narrow = multiplies_bfloat16(device)
    if config.precision == "auto":  # what has to be converted is not even worth its timing
        return SIMPLEST_PRECISION_FIRST if narrow else ("float32",)
    return (config.precision,)


def _divisors(threads: int) -> list[int]:
    """Numbers of processes that may share them."""
    return [count for count in (2, 4, 8) if threads % count == 0] if dist.is_gloo_available() else []


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


def _seconds_of(
    ways: Sequence[Way], model: nn.Module, train_step: Callable[[int], object], device: torch.device
) -> dict[Way, float]:
    """What a step takes each way, at best: what else the machine does only adds to it. Taken in turn, so that what it
    does for a while falls on all alike."""
    seconds = dict.fromkeys(ways, math.inf)
    for number in range(ROUNDS + 1):
        for way in ways:
            use_kernel(model, way.kernel)
            narrow = torch.autocast(device.type, torch.bfloat16, enabled=way.precision == "bfloat16")
            with narrow, as_one_of(way.processes):
                start = time.perf_counter()
                train_step(way.processes)
                took = time.perf_counter() - start
            if number:  # the first warms up
                seconds[way] = min(seconds[way], took)
    return seconds
