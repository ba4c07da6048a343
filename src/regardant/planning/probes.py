"""Settings that are chosen by timing training steps: precision, attention kernel and number of processes.

See docs/decisions/0004. A run folder keeps the decisions, and resuming reuses them.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple, Self, get_args

import torch
import torch.distributed as dist
from torch import nn

from regardant.attention import KERNELS, ScaledDotProduct
from regardant.errors import ConfigError
from regardant.kernels import available
from regardant.training.config import KernelName, Precision, Strategy, TrainingConfig
from regardant.training.devices import multiplies_bfloat16
from regardant.training.job import Batch, Job

SIMPLEST_PRECISION_FIRST: tuple[Precision, ...] = ("float32", "bfloat16")
SIMPLEST_KERNEL_FIRST: tuple[KernelName, ...] = ("matmul", "sdpa")

ROUNDS = 3
"""Largest number of timed steps of each candidate."""

SHARE, MOST_SECONDS = 1 / 30, 20.0
"""Share of training.max_minutes that measuring may take, and seconds if the budget is not given in minutes. The first
step of each candidate is always timed."""

LOGGED_SECONDS = 2.0
"""Seconds of measuring from which it is logged."""

NEAR_TIE = 1.05
"""Factor within which a candidate counts as equally fast, so that a machine decides the same under different load."""

HINDRANCE = 1.2
"""Factor by which a step is slower in one of several processes than measured alone: processes sum gradients, share the
memory's bandwidth, and each runs the optimizer."""

MOST_THREADS = 4096
"""Largest number of threads or processes in a run.yaml."""

LONG = 60.0
"""Seconds of training from which more processes pay off; each has to read the corpus first."""


@dataclass(frozen=True)
class Decisions:
    """Settings that must stay the same when a run is resumed."""

    precision: Precision
    kernel: KernelName
    threads: int
    """Threads of all processes together."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of a training step of a median batch, by candidate."""
    processes: int = 1
    strategy: Strategy = "sum"
    """Strategy by which the processes share the model."""
    compiled: bool = False
    """True if torch.compile was requested and is faster."""

    def as_dict(self) -> dict[str, Any]:
        """Return the content for run.yaml."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Return the decisions of a run.yaml. Raises ValueError for an invalid value."""
        found = cls(**content)
        choices = {"precision": SIMPLEST_PRECISION_FIRST, "kernel": tuple(KERNELS), "strategy": get_args(Strategy)}
        for name, allowed in choices.items():
            if getattr(found, name) not in allowed:
                raise ValueError(f"decided.{name}: given {getattr(found, name)!r}; allowed: {', '.join(allowed)}")
        for name in ("threads", "processes"):
            count = getattr(found, name)
            if type(count) is not int or not 0 < count <= MOST_THREADS:
                raise ValueError(f"decided.{name}: given {count!r}; allowed: 1 to {MOST_THREADS}")
        return found

    def apply(self, model: nn.Module) -> None:
        """Set the number of threads and the model's attention kernel."""
        torch.set_num_threads(self.threads)
        use_kernel(model, self.kernel)

    def autocast(self, device: torch.device) -> torch.autocast:
        """Return the context in which matrix products have the chosen precision."""
        return autocast(self.precision, device)

    def summary(self) -> str:
        """Return the decisions as one line to log."""
        line = f"precision {self.precision}, attention kernel {self.kernel}, {self.threads} threads"
        if self.processes > 1:
            line += f" in {self.processes} processes ({self.strategy})"
        if self.compiled:
            line += ", compiled"
        if not self.seconds:
            return line
        return f"{line} (measured: {', '.join(f'{name} {1000 * s:.0f} ms' for name, s in self.seconds.items())})"


class StepCandidate(NamedTuple):
    """A candidate: precision, kernel and number of processes."""

    precision: Precision
    kernel: KernelName
    processes: int

    @property
    def name(self) -> str:
        """The name in run.yaml and in the summary."""
        several = f" in {self.processes} processes" if self.processes > 1 else ""
        return f"{self.precision}/{self.kernel}{several}"


@dataclass(frozen=True)
class Steps:
    """Timed training steps of candidates."""

    model: nn.Module
    train_step: Callable[[int], object]
    """Runs forward and backward on the part of a batch of one of so many processes, and leaves no gradients behind."""
    device: torch.device
    until: float = math.inf
    """Reading of the clock after which no round begins."""
    log: Callable[[str], None] = lambda line: None
    known: Mapping[str, float] = field(default_factory=dict)
    """Seconds by name of a candidate, measured before."""
    cold: set[str] = field(default_factory=set)
    """Names of the candidates of which only the first step was timed, which warms up."""

    def fastest(self, ways: Sequence[StepCandidate]) -> dict[StepCandidate, float]:
        """Return the seconds of the fastest step of each candidate: other load of the machine can only add to it.

        Candidates take turns, so that a period of other load falls on all of them. The first round warms up, and counts
        only if there is no time for another. Nothing is timed if the times of all are known.
        """
        if all(way.name in self.known for way in ways):
            return {way: self.known[way.name] for way in ways}
        seconds, start = {}, time.perf_counter()
        for number, way in enumerate(ways, 1):
            if time.perf_counter() > start + LOGGED_SECONDS:
                self.log(f"measuring ways of computing a step: {number} of {len(ways)}")
            seconds[way] = self._seconds_of(way)
            self.cold.add(way.name)
        left = min(ROUNDS * sum(seconds.values()), self.until - time.perf_counter())
        if left > LOGGED_SECONDS:
            self.log(f"measuring {len(ways)} ways of computing a step: about {left:.0f} s")
        for number in range(ROUNDS):
            if time.perf_counter() >= self.until:
                break
            took = {way: self._seconds_of(way) for way in ways}
            seconds = {way: min(took[way], seconds[way]) if number else took[way] for way in ways}
            self.cold.difference_update(way.name for way in ways)
        return seconds

    def without_cold(self, seconds: Mapping[str, float]) -> dict[str, float]:
        """Return the times by name that are of more than a first step, so that later runs may decide by them."""
        return {name: one for name, one in seconds.items() if name not in self.cold}

    def _seconds_of(self, way: StepCandidate) -> float:
        """Return the seconds of a step, rounded as run.yaml has them, so that kept times lead to the same choice."""
        use_kernel(self.model, way.kernel)
        with autocast(way.precision, self.device), threads_of_one(way.processes):
            start = time.perf_counter()
            self.train_step(way.processes)
            seconds = time.perf_counter() - start
        return float(f"{seconds if way.processes == 1 else HINDRANCE * seconds:.4g}")


def decide(steps: Steps, config: TrainingConfig, updates_per_epoch: int) -> Decisions:
    """Time a training step in every allowed precision with every kernel and, if training is long enough, with its batch
    divided among processes. The fastest candidate wins, in a near tie the simplest.

    Other processes are not started for this; their cost to each other is estimated by HINDRANCE.

    Raises ConfigError if several processes are asked for on an accelerator.
    """
    device, threads = steps.device, torch.get_num_threads()
    precisions = _precisions(config, device)
    kernels = SIMPLEST_KERNEL_FIRST if config.attention_kernel == "auto" else (config.attention_kernel,)
    if device.type == "cuda":  # not timed: such a machine is built for bfloat16 and fused attention
        require_one_on_accelerator(config.processes, device)
        fused: KernelName = "triton" if available(device) else "sdpa"
        return Decisions(precisions[-1], fused if config.attention_kernel == "auto" else kernels[0], threads)
    processes, more = (1, _divisors(threads)) if config.processes == "auto" else (config.processes, [])
    ways = [StepCandidate(precision, kernel, processes) for precision in precisions for kernel in kernels]
    if len(ways) == 1 and not more:
        return Decisions(*ways[0][:2], threads, processes=processes)
    seconds = steps.fastest(ways)
    if more and _is_long(config, updates_per_epoch, min(seconds.values())):
        best = [min((way for way in ways if way.precision == one), key=seconds.__getitem__) for one in precisions]
        divided = [way._replace(processes=count) for count in more for way in best]
        seconds |= steps.fastest(divided)
    fastest = min(seconds.values())
    chosen = next(way for way, value in seconds.items() if value <= NEAR_TIE * fastest)
    measured = {way.name: value for way, value in seconds.items()}
    return Decisions(chosen.precision, chosen.kernel, threads, measured, chosen.processes)


def require_one_on_accelerator(processes: int | Literal["auto"], device: torch.device) -> None:
    """Raise ConfigError if several processes are requested on an accelerator."""
    if device.type == "cuda" and processes not in ("auto", 1):
        raise ConfigError(
            "training.processes divides the cores of a CPU, and this machine has an accelerator: leave it out"
        )


def use_kernel(model: nn.Module, kernel: KernelName) -> None:
    """Make all exact attention of a model use this kernel."""
    for module in model.modules():
        if isinstance(module, ScaledDotProduct):
            module.kernel = KERNELS[kernel]


def autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """Return the context in which matrix products have this precision."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")


def dry_run(
    job: Job, planned: Any, device: torch.device, processes: int = 1, through: nn.Module | None = None
) -> float:
    """Run forward and backward on one process's part of a batch and return the seconds that it took.

    `through` is the compiled model of the job, if it is compiled. No gradient is left behind.
    """
    start = finished_at(device)
    batch: Batch = job.load(planned)
    loss = job.loss(job.model if through is None else through, batch.part(0, processes), device)
    loss.total.backward()
    job.model.zero_grad(set_to_none=True)
    return finished_at(device) - start


@contextmanager
def threads_of_one(processes: int) -> Iterator[None]:
    """Limit the context to the threads of one of `processes` processes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads // processes))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _precisions(config: TrainingConfig, device: torch.device) -> tuple[Precision, ...]:
    narrow = multiplies_bfloat16(device)
    if config.precision == "auto":  # products that are converted to float32 first are never faster
        return SIMPLEST_PRECISION_FIRST if narrow else ("float32",)
    return (config.precision,)


def _divisors(threads: int) -> list[int]:
    """Return the numbers of processes that can share the threads."""
    return [count for count in (2, 4, 8) if threads % count == 0] if dist.is_gloo_available() else []


def _is_long(config: TrainingConfig, updates_per_epoch: int, seconds: float) -> bool:
    """Return whether training takes longer than LONG."""
    if config.max_minutes == "auto" and not (config.max_updates or config.max_epochs):
        return True
    per_update = config.accumulate * seconds
    return per_update * config.updates(updates_per_epoch, per_update) > LONG


def time_to_measure(config: TrainingConfig) -> float:
    """Return the seconds that measuring may take before a training."""
    minutes = config.max_minutes
    return MOST_SECONDS if minutes is None or minutes == "auto" else 60 * SHARE * minutes


def least(run: Callable[[], float], until: float) -> float:
    """Return the least of ROUNDS results of `run`; only the first may begin after the clock reads `until`."""
    found = run()
    for _ in range(ROUNDS - 1):
        if time.perf_counter() >= until:
            break
        found = min(found, run())
    return found


def finished_at(device: torch.device) -> float:
    """Wait for all work queued on the device and return the clock, in seconds."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()
