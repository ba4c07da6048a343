"""How a model is trained."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from regardant.config import Config
from regardant.training.averaging import AveragingConfig, EmaConfig
from regardant.training.optimizers import AdamWConfig, OptimizerConfig
from regardant.training.schedules import LinearConfig, ScheduleConfig

Precision = Literal["float32", "bfloat16"]

Kernel = Literal["matmul", "sdpa", "online_softmax"]
"""Names of `attention.KERNELS`."""


TRAINING_SHARE = 0.93
"""Of a run's time. Validation takes the rest."""


class TrainingConfig(Config):
    """Budget, batches, optimizer, schedule and what is kept."""

    start_from: str | None = Field(None, alias="from")
    """A finished run to start from: its model and vocabulary, or the parts of it that are named."""

    parts: tuple[str, ...] | None = Field(None, min_length=1)
    """Parts of the earlier run's model to start from, as [input, encoder]; all others are fresh, and the task may be
    another one. Empty: the whole model."""

    max_minutes: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["auto"] | None = None
    """Stop after so many minutes of training and validation, over all resumes; the schedule ends with them.
    auto: from the corpus and the speed of the machine, unless updates or epochs are given."""

    max_updates: int | None = Field(None, gt=0)
    """Stop after so many updates."""

    max_epochs: int | None = Field(None, gt=0)
    """Stop after so many passes over the data."""

    batch_tokens: int = Field(4096, gt=0)
    """Most elements (tokens, patches, frames) of a batch, with padding, on its longer side."""

    accumulate: int = Field(1, gt=0)
    """Batches of one update. Their loss is a mean over all their targets."""

    schedule: ScheduleConfig = LinearConfig()
    """The learning rate over time."""

    optimizer: OptimizerConfig = AdamWConfig()
    """What makes a step of a gradient."""

    clip_norm: float = Field(1.0, ge=0)
    """Longest gradient; a longer one is shortened to it. 0: no clipping."""

    precision: Precision | Literal["auto"] = "auto"
    """Of the matrix products; weights stay float32. auto: the faster on this machine, measured once and kept."""

    attention_kernel: Kernel | Literal["auto"] = "auto"
    """Of exact attention. auto: the faster on this machine, measured once and kept."""

    compile: bool = False
    """Try torch.compile, which takes minutes, and train through it where it is faster than what it is given. Where it
    fails or does not pay, training says so and goes on without it."""

    processes: Annotated[int, Field(gt=0)] | Literal["auto"] = "auto"
    """Among which the rows of each batch are divided, each with its share of the threads. auto: one, or on a CPU where
    it is faster and the run is long enough, one a thread; measured once and kept."""

    averaging: AveragingConfig = EmaConfig()
    """What is validated and kept in place of the last weights."""

    validate_every: int | None = Field(None, gt=0)
    """Updates from one validation to the next. Empty: so that validation takes under a tenth of the time."""

    best_by: str | None = None
    """Metric of the validation that selects the weights to keep. null: the first metric of the task."""

    patience: int | None = Field(None, gt=0)
    """Stop after so many validations without a better one."""

    checkpoint_minutes: float = Field(5.0, gt=0)
    """A crash loses at most so much."""

    keep_checkpoints: int = Field(2, gt=0)
    """How many to keep to resume from."""

    @model_validator(mode="after")
    def parts_are_of_a_run(self) -> Self:
        """Refuse parts without the run that has them."""
        if self.parts is not None and self.start_from is None:
            raise ValueError("parts are those of an earlier run: set training.from=RUN too")
        return self

    @model_validator(mode="after")
    def has_an_end(self) -> Self:
        """Some budget."""
        if self.max_minutes is None and self.max_updates is None and self.max_epochs is None:
            raise ValueError("a run needs an end: set max_minutes, max_updates or max_epochs")
        return self

    def replaced(self, **fields: Any) -> Self:
        """The same with these fields, checked again."""
        given = self.model_dump(by_alias=True, exclude_unset=True)
        return type(self).model_validate({**given, **fields})

    def updates(self, updates_per_epoch: int, seconds_per_update: float) -> int:
        """How many the budget allows, by the bound that is met first."""
        bounds = []
        if self.max_updates:
            bounds.append(self.max_updates)
        if self.max_epochs:
            bounds.append(self.max_epochs * updates_per_epoch)
        if isinstance(self.max_minutes, float):
            bounds.append(int(TRAINING_SHARE * 60 * self.max_minutes / seconds_per_update))
        return max(1, min(bounds))


class NextTokenTraining(TrainingConfig):
    """Training of a model that predicts the next token of a vocabulary."""

    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Share of the target distribution spread over the whole vocabulary."""

    z_loss: float = Field(0.0, ge=0, allow_inf_nan=False)
    """Weight of log^2 Z of the softmax over the vocabulary in the loss of a target (PaLM: 0.0001). It keeps logits from
    drifting. Validation does not include it."""
