"""Averages of a model's weights over training, which generalise better than the last weights alone.

Polyak and Juditsky 1992, "Acceleration of Stochastic Approximation by Averaging".

none    no average: the last weights
ema     average = d * average + (1 - d) * weights after update n, where d = min(decay, (1 + n) / (10 + n))
        (the decay grows, so that the random first weights are forgotten quickly)
last    mean of the weights at the last validations (Vaswani et al. 2017, section 6.1)

Parameters are averaged in float32, tied ones once. Buffers are not averaged. Processes with shards of the parameters
average their own.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regardant.config import Config
from regardant.training.sharded_weights import local


class Average:
    """Weights that are validated and saved in place of those being trained. The base class averages nothing."""

    def update(self, model: nn.Module) -> None:
        """Add the weights after an update of the optimizer."""

    def snapshot(self, model: nn.Module) -> None:
        """Add the weights at a validation. Call it before `averaged`."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint: plain containers and the tensors themselves, not copies."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of `state_dict`, for a model with the same parameters."""

    def fill(self, model: nn.Module) -> None:
        """Allocate all memory that the average will ever take."""

    def held(self) -> list[Tensor]:
        """Return all tensors that the average holds."""
        return []

    def weights(self) -> list[Tensor] | None:
        """Return the averages in the order of `model.parameters()`. None: use the model's own weights."""
        return None

    @contextmanager
    def averaged(self, model: nn.Module) -> Iterator[None]:
        """Load the averages into the model inside the context, and restore its own weights, bit by bit, after it.

        Costs a copy of the weights.
        """
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
    """Exponential moving average. Holds one float32 copy of the weights."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self.running = [parameter.detach().float().clone() for parameter in model.parameters()]

    def update(self, model: nn.Module) -> None:
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        newest = [local(parameter.detach()).float() for parameter in model.parameters()]
        torch._foreach_lerp_([local(mine) for mine in self.running], newest, 1 - decay)

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
    """Mean of the last snapshots, which are kept on the CPU. Before the first one, the model's own weights."""

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
    """No average: the last weights."""

    kind: Literal["none"] = "none"

    def build(self, model: nn.Module) -> Average:
        return Average()


class EmaConfig(Config):
    """Exponential moving average over all updates."""

    kind: Literal["ema"] = "ema"

    decay: float = Field(0.999, gt=0, lt=1)
    """Decay of the average, once warmed up: 0.999 averages about the last thousand updates."""

    def build(self, model: nn.Module) -> Average:
        return ExponentialAverage(model, self.decay)


class LastConfig(Config):
    """Mean of the weights at the last validations."""

    kind: Literal["last"] = "last"

    count: int = Field(5, gt=0)
    """Number of validations. Each costs a copy of the model in memory and in every checkpoint."""

    def build(self, model: nn.Module) -> Average:
        return LastAverage(self.count)


AveragingConfig = Annotated[NoAveragingConfig | EmaConfig | LastConfig, Field(discriminator="kind")]
"""Union of the averages by `kind`. Each has `build(model)`."""


@torch.no_grad()
def _copy(weights: list[Tensor], model: nn.Module) -> None:
    for parameter, weight in zip(model.parameters(), weights, strict=True):
        parameter.copy_(weight)
