"""The run that checks read, and the results that they return."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from regardant.errors import RunError
from regardant.models.base import Model
from regardant.models.representations import Representation
from regardant.planning.probes import Decisions
from regardant.tasks.base import TaskConfig, Trained
from regardant.tasks.probe import Probe
from regardant.training.events import named
from regardant.training.metrics import BestValidation

Found = TypeVar("Found")

LEAST_EVENTS = 20
"""Minimum number of training events in a curve. An event covers ten updates."""


@dataclass(frozen=True)
class Finding:
    """Problem of a run."""

    what: str
    """The problem, in one line."""
    evidence: str
    """Measurements, and their place in the run."""
    cure: str
    """The change to make."""


@dataclass(frozen=True)
class Seen:
    """Result of a check."""

    measured: str
    """One line with the measurement, also if nothing is wrong."""
    findings: Sequence[Finding] = ()
    pictures: Sequence[str] = ()
    """SVG elements for the page."""


class LeftOut(Exception):
    """Reason for which a check does not apply to a run."""


@dataclass(frozen=True)
class DoctorCheck:
    """A check with its name."""

    name: str
    look: Callable[["Case"], Seen]
    """Function that checks a run. Raises LeftOut if the check does not apply."""


@dataclass(frozen=True)
class Case:
    """Run to be checked, finished or not."""

    config: TaskConfig
    """The recipe with all automatic settings resolved."""
    decided: Decisions
    plan: Mapping[str, Any]
    """The plan, as `Plan.as_dict` returns it."""
    events: Sequence[Mapping[str, Any]]
    """The events of metrics.jsonl."""
    open: Callable[[], Trained]
    """Function that opens the trained run. Raises LeftOut if there is no model yet, RunError for a damaged one."""

    @cached_property
    def training(self) -> list[Mapping[str, Any]]:
        """Events of training, ten updates each."""
        return [{"loss": None, "gradient_norm": None, **event} for event in named(self.events, "train", "progress")]

    @cached_property
    def validations(self) -> list[Mapping[str, Any]]:
        """Events of validation that have a loss."""
        return named(self.events, "validation", "loss")

    @property
    def kept(self) -> Mapping[str, Any]:
        """The validation event whose weights were kept. Raises LeftOut before the first validation."""
        metric = self.config.metric
        validations = named(self.validations, "validation", metric.name)
        if not validations:
            raise LeftOut("nothing has been validated yet")
        best = BestValidation()
        keeps = [one for one in validations if best.record(metric.score(one[metric.name]), one["update"], metric.noise)]
        return keeps[-1]

    def curve(self, name: str) -> list[tuple[int, float]]:
        """Return (update, value) of a field of training events, without missing values. Raises LeftOut for too few."""
        points = [(event["update"], event[name]) for event in self.training if event[name] is not None]
        if len(points) < LEAST_EVENTS:
            updates = self.training[-1]["update"] if self.training else 0
            raise LeftOut(f"{updates:,} updates are too few to judge a curve")
        return points

    @cached_property
    def trained(self) -> Trained:
        """The trained run. Raises LeftOut if there is no model yet, RunError for a damaged one."""
        return self.open()

    @cached_property
    def probe(self) -> Probe:
        """Rows of validation data that checks run the model on. Raises LeftOut if the data is gone."""
        trained = self.trained  # outside `try`: a damaged model is refused, not left out
        try:
            return trained.probe()
        except RunError as error:
            raise LeftOut(str(error)) from error

    @cached_property
    def answers(self) -> Tensor:
        """Scores of the probe, as `scores` returns them."""
        return self.scores(self.probe.inputs)

    def scores(self, inputs: Mapping[str, Any]) -> Tensor:
        """Return the head's scores of inputs, in float32. For a head that compares inputs, the unit vectors of the
        inputs instead, which depend on no other row."""
        model = self.trained.model
        with torch.inference_mode():
            if model.head.compares_inputs:
                return F.normalize(model.vectors(**inputs).values.float(), dim=-1)
            return model.scores(**inputs).float()

    def lengths(self, name: str) -> list[int]:
        """Return the number of elements of every row of an input, padding left out."""
        return [len(labels) for labels in self.probe.labels[name]]

    def unit(self, name: str) -> str:
        """Return the name of an element of an input, such as "token"."""
        model = self.trained.model
        part = getattr(model, name, None)  # None for an input that the model does not read
        part = model.representation(name) if isinstance(part, Model) else part
        return part.unit if isinstance(part, Representation) else "element"

    def in_rows(self, name: str) -> bool:
        """Return whether an input is a tensor [N, T, ...] with one number or vector for each element."""
        value = self.probe.inputs[name]
        return isinstance(value, Tensor) and value.dim() in (2, 3) and value.shape[1] == max(self.lengths(name))

    @property
    def loss_unit(self) -> str:
        """Unit of the loss, such as "nats per label"."""
        return next((one.unit for one in self.config.metrics if one.name == "loss" and one.unit), "nats")


def differences(case: Case, before: Tensor, after: Tensor, *, of_other_rows: bool = False) -> Tensor:
    """Return the differences of scores, in standard deviations of the scores of the probe.

    A masked answer has the score minus infinity. The difference is 0 where both scores are masked, and infinite where
    only one is. With `of_other_rows`, where scores are also masked at the padding of other rows, it is 0 there too.
    """
    masked = before.isneginf() | after.isneginf() if of_other_rows else before.isneginf() & after.isneginf()
    spread = float(case.answers[~case.answers.isneginf()].std().clamp_min(1e-12))
    return (before - after).abs().masked_fill(masked, 0.0) / spread


def worst(found: Iterable[Found], size: Callable[[Found], float]) -> Found:
    """Return the element of the largest size, where NaN is larger than all numbers.

    `max` by size alone loses a NaN that does not come first, because every comparison with NaN is false.
    """
    return max(found, key=lambda one: (math.isnan(size(one)), size(one)))


def middle(points: Sequence[tuple[int, float]], start: float, end: float) -> float:
    """Return the median of the part of a curve between two shares of its length."""
    count = len(points)
    return median(number for _, number in points[int(start * count) : max(int(end * count), int(start * count) + 1)])


def lower_rate(case: Case) -> str:
    """Return the advice to lower the learning rate, with the field and its value."""
    schedule = case.config.training.schedule.model_dump()
    field = "factor" if "factor" in schedule else "learning_rate"
    return f"lower training.schedule.{field} from {schedule[field]:g} to {schedule[field] / 3:.2g}"
