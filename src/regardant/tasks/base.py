"""Interfaces of a task: its configuration, its training job and its trained runs."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regardant.config import Config
from regardant.config.run_files import WEIGHTS
from regardant.errors import ConfigError, RunError
from regardant.models.base import Model
from regardant.models.heads import Loss
from regardant.pictures import Chapter, facts
from regardant.tasks.comparison import compare_runs
from regardant.tasks.probe import Probe
from regardant.training.config import TrainingConfig
from regardant.training.metrics import Metric, selecting_metric

if TYPE_CHECKING:
    from regardant.modalities import ModalityConfig
    from regardant.tasks.exchange import Exchange
    from regardant.tasks.inspection import Inspection
    from regardant.tasks.measures import Measures

VALIDATION_SHARE = 0.1
"""Maximum share of a run's time for validation."""

LEAST_INTERVAL = 10
"""Minimum number of updates between validations."""

READING_COST = 1 / 3
"""Cost of a validated target in trained targets, where a validation is the forward pass alone."""

Log = Callable[[str], None]

ItemView = Callable[..., dict[str, Any]]
"""Function from an item and options to plain values for a page."""


class Batches(Protocol):
    """The training batches of a job, as planning measures them."""

    @property
    def targets_per_epoch(self) -> int:
        """Number of targets in an epoch."""

    def plan(self, epoch: int) -> Sequence[Any]:
        """Return the batches of an epoch in a form that `load` takes."""

    def load(self, planned: Any) -> Any:
        """Return one planned batch as a `training.job.Batch` with inputs and targets."""

    def largest_batches(self) -> Sequence[Any]:
        """Return the planned batches one of which takes most memory."""

    def median_batch(self) -> Any:
        """Return a planned batch of median length."""

    def sample_batches(self) -> Sequence[Any]:
        """Return planned batches that represent all lengths."""

    def padding(self) -> dict[str, float]:
        """Return the share of padding by side ("source", "target"). Empty if no batch is padded."""


class TaskJob:
    """Base of jobs: a model, its training batches and the interval between validations.

    Implements `training.job.Job`. A subclass validates, and passes the cost of a validation in trained targets.
    """

    unit: str

    def __init__(self, config: "TaskConfig", model: Model, batches: Batches, *, validation_cost: float) -> None:
        self.config: Any = config
        self.model: Any = model
        self.batches: Any = batches
        self.metrics = config.metrics
        self.divisible = model.head.divisible
        self.validate_every = self.interval(validation_cost)

    def interval(self, validation_cost: float) -> int:
        """Return the number of updates between validations, given the cost of a validation in trained targets.

        `training.validate_every` if set. Otherwise the interval follows from numbers of targets and not from the
        clock, so that a run can be reproduced.
        """
        interval = math.ceil(validation_cost / VALIDATION_SHARE / self.targets_per_update)
        return self.config.training.validate_every or max(LEAST_INTERVAL, interval)

    @property
    def targets_per_epoch(self) -> int:
        """Number of targets in an epoch."""
        return int(self.batches.targets_per_epoch)

    @cached_property
    def updates_per_epoch(self) -> int:
        """Number of updates in an epoch, counted once; the last one may have fewer batches."""
        return math.ceil(len(self.batches.plan(0)) / self.config.training.accumulate)

    @property
    def targets_per_update(self) -> float:
        """Mean number of targets in an update."""
        return self.targets_per_epoch / self.updates_per_epoch

    def plan(self, epoch: int) -> Sequence[Any]:
        planned: Sequence[Any] = self.batches.plan(epoch)
        return planned

    def load(self, planned: Any) -> Any:
        return self.batches.load(planned)

    def loss(self, model: nn.Module, batch: Any, device: torch.device) -> Loss:
        batch = batch.to(device)
        loss: Loss = model(**batch.inputs, targets=batch.targets)
        return loss

    def validate(self, model: nn.Module, device: torch.device) -> dict[str, float]:
        raise NotImplementedError

    def observe(self, model: nn.Module, device: torch.device) -> dict[str, Any]:
        return {}

    @property
    def validation_targets(self) -> int | None:
        """Number of targets of a validation that the budget may restrict to a part of the data. None: it never does."""
        return None

    def validate_on(self, targets: int) -> None:
        """Restrict validation to the same part of the data as when a run began, given its number of targets."""

    def warm_up_validation(self, device: torch.device) -> None:
        """Run the part of a validation that takes most memory."""
        raise NotImplementedError


class Prepared(Protocol):
    """Resolved recipe: its configuration, its job and the fingerprints of its data."""

    @property
    def config(self) -> "TaskConfig":
        """Configuration with all settings resolved but those that depend on the training speed."""

    @property
    def job(self) -> TaskJob: ...

    @property
    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of the data, by split."""

    def with_speed(self, tokens_per_second: float, log: Log) -> "TaskConfig":
        """Resolve the settings that depend on the measured training speed."""


@dataclass(frozen=True)
class Prediction:
    """The answer to one item."""

    item: str
    """The item as it was given."""
    answer: str
    """Answer in one line."""
    details: Mapping[str, Any]
    """Further values for --json: probabilities by label, candidates, scores."""
    notes: Sequence[str] = ()
    """Notes for the user: an item that was cut, words that were never seen."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""
        return {"item": self.item, "answer": self.answer, **self.details, "notes": list(self.notes)}

    def _repr_html_(self) -> str:
        return facts(self.item, [("answer", self.answer), *(("note", note) for note in self.notes)])


@dataclass(frozen=True)
class Example:
    """An item of a run's own data that a page offers as an example."""

    item: str
    """The item as a command line gives it: a text, or the path of a file."""
    picture: str | None = None
    """Data URL of the item's picture."""


class Trained:
    """Base of trained runs. Its methods are the verbs of a task."""

    model: Model

    def predict(self, items: Sequence[str], **options: Any) -> list[Prediction]:
        """Return the answers to items as a command line gives them: texts, or paths of files."""
        raise NotImplementedError

    def inspect(self, item: str, **options: Any) -> "Inspection":
        """Return the answer to one item with the tensors recorded in the model. Raises DataError or ConfigError."""
        raise NotImplementedError

    def look(self, item: str, **options: Any) -> "Inspection":
        """Return an inspection whose details also hold everything else that a page shows."""
        return self.inspect(item, **options)

    @property
    def views(self) -> Mapping[str, ItemView]:
        """Views of an item beside its attention, by name: functions of the item and the options of `inspect`."""
        return {}

    def examples(self, count: int, folder: Path) -> list[Example]:
        """Return up to `count` items of the validation set. Items that are files are written to `folder`.

        Raises RunError if the data is gone.
        """
        return []

    def known_words(self) -> frozenset[str]:
        """Return the words of the training texts in lower case. Empty: not known."""
        return frozenset()

    def measure(self, data: Sequence[Path] = (), treebank: Path | None = None) -> "Measures":
        """Measure the model's attention over validation data, or over files. Results are kept in RUN/measures."""
        raise NotImplementedError

    def probe(self) -> Probe:
        """Return a fixed choice of rows of the run's validation data. Raises RunError if the data is gone."""
        raise NotImplementedError

    def encoded_twice(self, count: int) -> list[tuple[Sequence[int], Sequence[int]]]:
        """Return the tokens of up to `count` validation texts as training read them, and tokenised anew. Empty: the run
        keeps no text to tokenise."""
        return []

    def export_differences(self, count: int) -> dict[str, tuple[float, str]]:
        """Return the largest difference between an export's and the model's log-probability per token, in nats, and
        its place, by name of the export, for its answers to up to `count` validation items. An export without a
        finished answer has NaN and no place. Raises ConfigError without its engine, RunError if it is damaged."""
        return {}

    def exchange(self, data: Sequence[Path] = ()) -> "Exchange | None":
        """Return texts of the run's test set, or of files, with the run's answers, to compare an export with.
        None: the run has no texts, or its task is not exported."""
        return None

    def target_counts(self) -> Tensor:
        """Return how often each target occurs, by default in the rows of `probe`. Raises RunError without data."""
        targets = self.probe().targets
        return targets[targets != self.model.head.ignored].bincount().cpu()

    def evaluate(self, data: Sequence[Path] = (), **options: Any) -> dict[str, dict[str, Any]]:
        """Return the scores of the run's own test sets, or of files, by name. They are kept in RUN/evaluation."""
        raise NotImplementedError

    def summary(self, name: str, scores: dict[str, Any]) -> Sequence[str]:
        """Return the scores of a test set as lines for people."""
        raise NotImplementedError


class Report(Protocol):
    """Comparison of runs."""

    def lines(self) -> list[str]:
        """Return lines for people."""

    def chapters(self) -> Sequence[Chapter]:
        """Return the chapters of the page."""

    def page(self) -> str:
        """Return a self-contained HTML page."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for --json."""


class TaskConfig(Config):
    """Configuration of a task: the content of a recipe."""

    named_by: ClassVar[str] = "task"

    verbs: ClassVar[tuple[str, ...]] = ()
    """Names of `predict` for this task, such as `translate`: further methods of `Run`."""

    inspect_options: ClassVar[tuple[str, ...]] = ()
    """Names of options that `Trained.inspect` takes beside the item."""

    views: ClassVar[tuple[str, ...]] = ()
    """Names of `Trained.views`."""

    augments: ClassVar[bool] = False
    """True if training changes items at random, as `augment` or `bpe_dropout` of their modality specifies."""

    task: str
    """The name of the task."""

    seed: int = Field(1, ge=0, lt=2**63)
    """Seed of the initial weights, the order of batches, dropout, and random splits and samples of the data."""

    data: Config
    """Data to train and validate on."""

    model: Config
    """The model."""

    training: TrainingConfig
    """Settings of training."""

    @model_validator(mode="after")
    def best_by_is_a_metric(self) -> Self:
        """Check `training.best_by` against the task's metrics."""
        try:
            _ = self.metric
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return self

    @model_validator(mode="after")
    def items_can_be_augmented(self) -> Self:
        """Refuse `augment` and `bpe_dropout` of a task that does not change training items."""
        sections = dict(self)
        for name, section in self:
            if isinstance(parts := getattr(section, "parts", None), Mapping):
                sections |= {f"{name}.parts.{part}": one for part, one in parts.items()}
        for name, section in sections.items():
            for field in ("augment", "bpe_dropout"):
                if getattr(section, field, None) and not self.augments:
                    raise ValueError(
                        f"{name}.{field} changes training items of classification and tagging only: leave it out"
                    )
        return self

    @property
    def metrics(self) -> Sequence[Metric]:
        """Metrics of a validation. The first one selects the best weights, unless `training.best_by` names one.

        A constant of the class, unless they depend on the recipe.
        """
        raise NotImplementedError

    @property
    def modality(self) -> "ModalityConfig | None":
        """Modality of the items. None: the task has a fixed one."""
        return None

    @property
    def suffixes(self) -> Sequence[str]:
        """File suffixes of items. Empty: items are texts."""
        return () if self.modality is None else self.modality.suffixes

    @property
    def metric(self) -> Metric:
        """The metric that selects the best weights."""
        return selecting_metric(self.metrics, self.training.best_by)


class Task:
    """Interface of tasks: their configuration, their training and their trained runs.

    A subclass with a `name` is registered when its module is imported, in the package or in a plugin.
    """

    name: ClassVar[str]
    config: ClassVar[type[TaskConfig]]
    files: ClassVar[Sequence[str]] = ()
    """Files of a trained run beside its weights and those of its modality, by name."""

    registered: ClassVar[dict[str, "Task"]] = {}

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            known = Task.registered.get(cls.name)
            if known is not None and type(known).__qualname__ != cls.__qualname__:
                raise TypeError(f"task {cls.name!r} is taken by {type(known).__qualname__}: choose another name")
            Task.registered[cls.name] = cls()

    def prepare(self, config: Any, run: Path, log: Log) -> Prepared:
        """Read the data into the run folder, resolve open settings, and build the model from the seed."""
        raise NotImplementedError

    def open(self, config: Any, run: Path, device: torch.device) -> Trained:
        """Return the trained run in a folder. Raises RunError if the folder is incomplete."""
        raise NotImplementedError

    def compare(self, runs: Mapping[Path, tuple[Any, Mapping[str, Any]]]) -> Report:
        """Compare runs with the first of them, given the configuration and the plan of each."""
        return compare_runs(runs)

    def files_of(self, config: TaskConfig) -> list[str]:
        """Return the names of all files that a trained run is opened from, weights included."""
        of_items = () if config.modality is None else config.modality.files
        return [*self.files, *of_items, WEIGHTS]

    def require_trained(self, run: Path) -> None:
        """Raise RunError if a run folder holds no model yet."""
        for name in (*self.files, WEIGHTS):
            if not (run / name).is_file():
                raise RunError(f"{run} has no {name}: train it first, or run its training command again to resume")
