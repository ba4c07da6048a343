"""The settings that are chosen by measuring the machine. A run folder keeps them, and resuming reuses them."""

from dataclasses import asdict, dataclass, field
from typing import Any, Self

import torch
from torch import nn

from regardant.attention import KERNELS, ScaledDotProduct
from regardant.training.config import Kernel, Precision


@dataclass(frozen=True)
class Decisions:
    """Settings that must stay the same when a run is resumed."""

    precision: Precision
    kernel: Kernel
    threads: int
    """Of all processes together."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of a training step of a median batch, by candidate."""
    processes: int = 1
    compiled: bool = False
    """Whether torch.compile was asked for and is faster."""

    def as_dict(self) -> dict[str, Any]:
        """Return the content for run.yaml."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Return the decisions of a run.yaml."""
        return cls(**content)

    def apply(self, model: nn.Module) -> None:
        """Set the number of threads and the model's attention kernel."""
        torch.set_num_threads(self.threads)
        use_kernel(model, self.kernel)

    def autocast(self, device: torch.device) -> torch.autocast:
        """Return the context in which products have the chosen precision."""
        return autocast(self.precision, device)

    def summary(self) -> str:
        """Return one line for people."""
        line = f"precision {self.precision}, attention kernel {self.kernel}, {self.threads} threads"
        if self.processes > 1:
            line += f" in {self.processes} processes"
        if self.compiled:
            line += ", compiled"
        if not self.seconds:
            return line
        return f"{line} (measured: {', '.join(f'{name} {1000 * s:.0f} ms' for name, s in self.seconds.items())})"


def use_kernel(model: nn.Module, kernel: Kernel) -> None:
    """Make all exact attention of a model use this kernel."""
    for module in model.modules():
        if isinstance(module, ScaledDotProduct):
            module.kernel = KERNELS[kernel]


def autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """Return the context in which products have this precision."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")
