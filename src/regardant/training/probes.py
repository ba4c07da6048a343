"""What is decided by measuring the machine: precision and attention kernel. The answer is kept in the run."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Self

import torch
from torch import nn

from regardant.attention import KERNELS, ScaledDotProduct
from regardant.training.config import Kernel, Precision, TrainingConfig

SIMPLEST_PRECISION_FIRST: tuple[Precision, ...] = ("float32", "bfloat16")
SIMPLEST_KERNEL_FIRST: tuple[Kernel, ...] = ("matmul", "sdpa")

NEAR_TIE = 1.1
"""What is no slower than this counts as fast: the same machine should decide alike twice, whatever else it does."""


@dataclass(frozen=True)
class Decisions:
    """What a resumed run must not decide anew."""

    precision: Precision
    kernel: Kernel
    threads: int
    seconds: dict[str, float] = field(default_factory=dict)
    """What each candidate took for a training step of a middling batch."""

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
    precisions = SIMPLEST_PRECISION_FIRST if config.precision == "auto" else (config.precision,)
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
    return Decisions(*best, threads, {"/".join(pair): round(value, 4) for pair, value in seconds.items()})


def _seconds_of(step: Callable[[], object], repeats: int = 3) -> float:
    step()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return median(taken)
