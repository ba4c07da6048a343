"""Averages of a model's weights over training, which generalise better than the last weights alone.

Polyak and Juditsky 1992, "Acceleration of Stochastic Approximation by Averaging".

none    the weights as they are
ema     average = d * average + (1 - d) * weights after update n, d = min(decay, (1 + n) / (10 + n))
        (a decay that grows lets the first, random weights go quickly)
last    the mean of the weights at the last validations (Vaswani et al. 2017, section 6.1)

Parameters are averaged, each tied one once, and always in float32; buffers stay the model's.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regardant.config import Config


class Average:
    """What is validated and saved in place of the weights being trained. This one averages nothing."""

    def update(self, model: nn.Module) -> None:
        """Take in the weights after an update of the optimizer."""

    def snapshot(self, model: nn.Module) -> None:
        """Take in the weights at a validation, before `averaged`."""

    def state_dict(self) -> dict[str, Any]:
        """Plain containers and tensors, not copies, from which `load_state_dict` goes on exactly."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave, for a model with the same parameters."""

    def fill(self, model: nn.Module) -> None:
        """Hold as much as it ever will."""

    def held(self) -> list[Tensor]:
        """All that it holds."""
        return []

    def weights(self) -> list[Tensor] | None:
        """The averages in the order of `model.parameters()`, or None when the model's own are to be used."""
        return None

    @contextmanager
    def averaged(self, model: nn.Module) -> Iterator[None]:
        """Lends `model` the averaged weights; after, it has its own again, bit for bit. Costs a copy."""
        averages = self.weights()
        if averages is None:
            yield
            return
        own = [parameter.detach().clone() for parameter in model.parameters()]
        _copy(averages, model)
        try:
            yield
        finally:
            _copy(own, model)


class ExponentialAverage(Average):
    """A running mean that forgets. Holds one float32 copy of the weights beside them."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self.running = [parameter.detach().float().clone() for parameter in model.parameters()]

    def update(self, model: nn.Module) -> None:
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        newest = [parameter.detach().float() for parameter in model.parameters()]
        torch._foreach_lerp_(self.running, newest, 1 - decay)

    def state_dict(self) -> dict[str, Any]:
        return {"updates": self.updates, "running": self.running}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.updates = state["updates"]
        for mine, saved in zip(self.running, state["running"], strict=True):
            mine.copy_(saved)

    def held(self) -> list[Tensor]:
        return self.running

    def weights(self) -> list[Tensor]:
        return self.running


class LastAverage(Average):
    """The mean of the last snapshots, kept on the CPU. Before the first, the model's own weights."""

    def __init__(self, count: int) -> None:
        self.snapshots: deque[list[Tensor]] = deque(maxlen=count)

    def snapshot(self, model: nn.Module) -> None:
        self.snapshots.append([parameter.detach().to("cpu", copy=True) for parameter in model.parameters()])

    def state_dict(self) -> dict[str, Any]:
        return {"snapshots": list(self.snapshots)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.snapshots.clear()
        self.snapshots.extend(state["snapshots"])

    def fill(self, model: nn.Module) -> None:
        while len(self.snapshots) < (self.snapshots.maxlen or 0):
            self.snapshot(model)

    def held(self) -> list[Tensor]:
        return [tensor for snapshot in self.snapshots for tensor in snapshot]

    def weights(self) -> list[Tensor] | None:
        if not self.snapshots:
            return None
        return [torch.stack(same).mean(0, dtype=torch.float32) for same in zip(*self.snapshots, strict=True)]


class NoAveragingConfig(Config):
    """The weights as training left them."""

    kind: Literal["none"] = "none"

    def build(self, model: nn.Module) -> Average:
        return Average()


class EmaConfig(Config):
    """Exponential moving average over all updates."""

    kind: Literal["ema"] = "ema"

    decay: float = Field(0.999, gt=0, lt=1)
    """How much of the average an update keeps, once warmed up: 0.999 looks back about a thousand updates."""

    def build(self, model: nn.Module) -> Average:
        return ExponentialAverage(model, self.decay)


class LastConfig(Config):
    """Mean of the weights at the last validations."""

    kind: Literal["last"] = "last"

    count: int = Field(5, gt=0)
    """How many validations back. Each costs a copy of the model in memory and in every checkpoint."""

    def build(self, model: nn.Module) -> Average:
        return LastAverage(self.count)


AveragingConfig = Annotated[NoAveragingConfig | EmaConfig | LastConfig, Field(discriminator="kind")]
"""Any average, told apart by `kind`. Each has `build(model)`."""


@torch.no_grad()
def _copy(weights: list[Tensor], model: nn.Module) -> None:
    for parameter, weight in zip(model.parameters(), weights, strict=True):
        parameter.copy_(weight)
