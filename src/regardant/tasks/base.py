"""What a task promises to the run and to the plan: a recipe, something to train, something trained."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regardant.config import Config
from regardant.errors import ConfigError, RunError
from regardant.models.base import Model
from regardant.training.config import TrainingConfig
from regardant.training.job import Job, Metric, selecting_metric

Say = Callable[[str], None]


class Batches(Protocol):
    """The training batches of a job, as planning measures them."""

    @property
    def targets_per_epoch(self) -> int:
        """Number of targets in an epoch."""

    def largest_batches(self) -> Sequence[Any]:
        """Return the planned batches one of which takes most memory."""

    def median_batch(self) -> Any:
        """Return a planned batch of median length."""

    def sample_batches(self) -> Sequence[Any]:
        """Return planned batches that represent all lengths."""

    def padding(self) -> dict[str, float]:
        """Return the share of padding by side ("source", "target"). Empty if no batch is padded."""


class TaskJob(Job, Protocol):
    """A `Job` that can be planned: measured before training starts."""

    @property
    def model(self) -> Model: ...

    @property
    def batches(self) -> Batches: ...

    @property
    def targets_per_epoch(self) -> int:
        """Number of targets in an epoch."""

    @property
    def updates_per_epoch(self) -> int:
        """Number of updates in an epoch; the last one may have fewer batches."""

    def warm_up_validation(self, device: torch.device) -> None:
        """Run the part of a validation that takes most memory."""


class Prepared(Protocol):
    """All that training needs."""

    @property
    def config(self) -> "TaskConfig":
        """With everything chosen that can be chosen so far."""

    @property
    def job(self) -> TaskJob: ...

    @property
    def fingerprints(self) -> dict[str, str]:
        """Of the data, by split."""

    def with_speed(self, tokens_per_second: float, say: Say) -> "TaskConfig":
        """With all that depends on the target tokens this machine trains a second chosen too."""


PROBE_TOKENS, PROBE_ROWS = 1024, 32
"""What a probe has at most, but for a few rows that it has at least."""


@dataclass(frozen=True)
class Probe:
    """Some of the data that a run was validated on, as its model takes it. N rows, padded with PAD."""

    read: Tensor | None
    """[N, S] the source. None: the model goes on with a text."""

    written: Tensor
    """[N, T] what it has written so far at every position."""

    asked: Tensor
    """[N, T] what comes next."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Of the model's `scores`."""
        return (self.written,) if self.read is None else (self.read, self.written)

    def with_written(self, written: Tensor) -> tuple[Tensor, ...]:
        """The inputs, had it written something else."""
        return replace(self, written=written).inputs


class Trained(Protocol):
    """What a finished run has become. The verbs of its task are methods of it."""

    @property
    def model(self) -> nn.Module: ...

    def generation(self, **fields: Any) -> Config:
        """The recipe's way to write, with those fields replaced that are not None."""

    def probe(self) -> Probe:
        """A few rows of the run's own validation data, the same ones always. Raises RunError where it is gone."""

    def evaluate(self, data: Sequence[Path] = (), **options: Any) -> dict[str, dict[str, Any]]:
        """Scores by name of the test set: the run's own ones, or those in files."""

    def told(self, name: str, scores: dict[str, Any]) -> Sequence[str]:
        """The scores of a test set, as lines for people."""


class Report(Protocol):
    """Runs compared."""

    def lines(self) -> list[str]:
        """For people."""

    def page(self) -> str:
        """An offline page."""

    def as_dict(self) -> dict[str, Any]:
        """For --json."""


class TaskConfig(Config):
    """What every task's recipe says, and the way from it to what the task does."""

    verbs: ClassVar[tuple[str, ...]]
    """What its runs can be asked for, beside training and a plan; the first is what they are for."""

    metrics: ClassVar[tuple[Metric, ...]]
    """Numbers that validation gives. The first one selects the best weights, unless `training.best_by` names one."""

    task: str
    """What is learned."""

    seed: int = Field(1, ge=0, lt=2**63)
    """Decides the first weights, the order of batches, all dropout, and what is drawn or split off at random."""

    data: Config
    """What it is learned from."""

    model: Config
    """What learns."""

    training: TrainingConfig
    """How it learns."""

    @model_validator(mode="after")
    def best_by_is_a_metric(self) -> Self:
        """Check `training.best_by` against the task's metrics."""
        try:
            _ = self.metric
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def metric(self) -> Metric:
        """The metric that selects the best weights."""
        return selecting_metric(self.metrics, self.training.best_by)

    def prepare(self, run: Path, say: Say) -> Prepared:
        """Read the data into the run folder, choose what is left open, build the model from the seed."""
        raise NotImplementedError

    def open(self, run: Path, device: torch.device) -> Trained:
        """What training has made of a run folder. Raises RunError where it is not whole."""
        raise NotImplementedError

    def compare(self, plans: Mapping[Path, Mapping[str, Any]]) -> Report:
        """Runs of this task, each with the plan it was begun with, against the first; where `compare` is a verb."""
        raise NotImplementedError


def require_trained(run: Path) -> None:
    """Raises RunError where a run folder holds no model yet."""
    for name in ("tokenizer.json", "model.safetensors"):
        if not (run / name).is_file():
            raise RunError(f"{run} has no {name}: train it first, or go on with the command that began it")
