"""The protocols of training: the parts that a task hands to the trainer. The trainer knows no task."""

from collections.abc import Sequence
from typing import Any, Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn

from regardant.training.metrics import Metric
from regardant.training.processes import Group


class Loss(Protocol):
    """The loss of a batch, summed over its targets."""

    @property
    def total(self) -> Tensor:
        """The sum to minimise."""

    @property
    def plain(self) -> Tensor:
        """The sum without regularisation such as label smoothing, to report."""

    @property
    def count(self) -> Tensor:
        """Number of targets in the sums."""


class Batch(Protocol):
    """The input of the model's forward pass."""

    @property
    def count(self) -> int:
        """Number of real targets, known without any computation on the device."""

    def part(self, number: int, parts: int) -> Self:
        """Return rows `number::parts`, the shard of one rank. Empty if there are fewer rows."""


class Job(Protocol):
    """A model with its batches, loss and validation."""

    @property
    def model(self) -> nn.Module:
        """The module whose parameters are trained."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """The numbers of `validate`. The first one selects the best weights, unless the recipe names another."""

    @property
    def unit(self) -> str:
        """Singular name of a target in progress lines ("target token", "label"); the plural takes an s."""

    @property
    def divisible(self) -> bool:
        """True if the loss of a batch is the sum of the losses of its rows. False for a contrastive loss, which
        compares rows: such a batch is not divided among processes or micro-batches."""

    def plan(self, epoch: int) -> Sequence[Any]:
        """Return the batches of an epoch in a form that `load` takes: a pure function of seed and epoch."""

    def load(self, planned: Any) -> Any:
        """Return one planned batch as a `Batch` on the CPU."""

    def loss(self, model: nn.Module, batch: Any, device: torch.device) -> Loss:
        """Return the loss of a batch through `model`, which may be wrapped for precision and devices."""

    def validate(self, model: nn.Module, device: torch.device) -> dict[str, float]:
        """Return the value of every metric on the validation set. `model` is in evaluation mode."""

    def observe(self, model: nn.Module, device: torch.device) -> dict[str, Any]:
        """Return JSON-serialisable observations of the model to store after a validation, or an empty dict."""

    validate_every: int
    """Updates between validations."""


@runtime_checkable
class CarriesState(Protocol):
    """A job whose batches continue one another: each begins with the state that earlier batches of its epoch left.

    The state has a row for each row of a batch. A process computes the state of its own rows.
    """

    def own_state(self, rank: int, size: int) -> Sequence[Tensor]:
        """Return the state with zeros in all rows but `rank::size`. The trainer replaces the tensors by their sums over
        all processes, so that each process has every row."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint, as plain containers and tensors."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from the state of a checkpoint."""


@runtime_checkable
class ReadsShards(Protocol):
    """A job whose processes read rows of their own, and resume reading at the position in a checkpoint.

    All processes plan an epoch at the same time. `count` of a batch is the sum over all processes.
    """

    def share(self, group: Group) -> None:
        """Read the rows of this process of a group. Called once, before a checkpoint is loaded."""

    def state_dict(self) -> dict[str, Any]:
        """Return the reading position of each process for a checkpoint, as plain containers."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume the epoch of a checkpoint. Raises RunError for one of another number of processes."""
