"""Configuration of training."""

from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from regardant.config import Config
from regardant.training.averaging import AveragingConfig, EmaConfig
from regardant.training.lora import LoraConfig
from regardant.training.optimizers import AdamWConfig, OptimizerConfig
from regardant.training.schedules import LinearConfig, ScheduleConfig
from regardant.training.trackers import DEFAULT

Precision = Literal["float32", "bfloat16"]

KernelName = Literal["matmul", "sdpa", "triton", "online_softmax"]
"""Names of `attention.KERNELS`."""


Strategy = Literal["sum", "ddp", "fsdp"]

COPIES = 5
"""Copies of the weights in training: weights, gradients, two moments and the average."""

TRAINING_SHARE = 0.93
"""Share of a run's time that training takes. Validation takes the rest."""


class FirstRun(NamedTuple):
    """Budget of a run that sets no end: a number of epochs, but at least `least_updates`, within bounds in minutes."""

    epochs: int
    """Passes over a small data set after which the model stops learning from it."""
    least_updates: int
    least_minutes: float
    most_minutes: float


class TrainingConfig(Config):
    """Budget, batches, optimizer, schedule, validation and checkpoints."""

    start_from: str | None = Field(None, alias="from")
    """Finished run to start from: its model and vocabulary are taken over, or the parts named in `parts`."""

    parts: tuple[str, ...] | None = Field(None, min_length=1)
    """Parts of the earlier run's model to take over, as [input, encoder]. All others start afresh, and the task may
    differ. Empty: the whole model."""

    frozen: tuple[str, ...] = ()
    """Parts of the model that are not trained, as [input, encoder.layers.0] of a model that is taken over."""

    lora: LoraConfig | None = None
    """Low-rank adaptation of the parts that are taken over, as {rank: 8, alpha: 16}: their weights are frozen, and each
    of their linear layers learns a product of two thin matrices, merged into the saved weights. Empty: no LoRA."""

    max_minutes: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["auto"] | None = None
    """Minutes of training and validation, over all resumes, after which training stops and the schedule ends.
    auto: chosen from the corpus and the speed of the machine, unless updates or epochs are given."""

    max_updates: int | None = Field(None, gt=0)
    """Number of updates after which training stops."""

    max_epochs: int | None = Field(None, gt=0)
    """Number of passes over the data after which training stops."""

    batch_tokens: int = Field(4096, gt=0)
    """Maximum number of elements (tokens, patches, frames) of a batch, with padding, on its longer side."""

    accumulate: int = Field(1, gt=0)
    """Number of batches per update (gradient accumulation). The loss is the mean over the targets of all batches."""

    schedule: ScheduleConfig = LinearConfig()
    """Schedule of the learning rate."""

    optimizer: OptimizerConfig = AdamWConfig()
    """Optimizer, which turns gradients into updates."""

    clip_norm: float = Field(1.0, ge=0)
    """Maximum norm of the gradient; a longer gradient is scaled down to it. 0: no clipping."""

    spike_factor: Annotated[float, Field(gt=1, allow_inf_nan=False)] | None = None
    """Multiple of the running mean of the loss above which training returns to the weights of the last report below it
    and skips the batches since. Takes the memory of weights, optimizer and average once more. Empty: never."""

    precision: Precision | Literal["auto"] = "auto"
    """Precision of matrix products; weights stay float32. auto: the faster on this machine, measured once and kept."""

    attention_kernel: KernelName | Literal["auto"] = "auto"
    """Kernel of exact attention. auto: the faster on this machine, measured once and kept."""

    compile: bool = False
    """Try torch.compile, which takes minutes, and train through it if that is faster. If it fails or is slower,
    training logs so and continues without it."""

    processes: Annotated[int, Field(gt=0)] | Literal["auto"] = "auto"
    """Number of processes that divide the rows of each batch, and the threads, among them. auto: one, or more on a CPU
    if that is faster and the run is long enough; measured once and kept. Leave it out if torchrun starts them."""

    strategy: Strategy | Literal["auto"] = "auto"
    """Strategy by which processes share a model. sum: each has all weights, and gradients are summed in one block after
    the backward passes. ddp: the same, summed in blocks during the last backward pass. fsdp: each has a shard of
    weights, gradients and optimizer state. auto: sum on CPUs; on accelerators ddp, or fsdp for a model that fills half
    of their memory."""

    averaging: AveragingConfig = EmaConfig()
    """Average of the weights that is validated and kept in place of the last weights."""

    validate_every: int | None = Field(None, gt=0)
    """Updates between validations. Empty: chosen so that validation takes less than a tenth of the time."""

    best_by: str | None = None
    """Metric of the validation that selects the weights to keep. Empty: the first metric of the task."""

    patience: int | None = Field(None, gt=0)
    """Number of validations without improvement after which training stops. Empty: never."""

    checkpoint_minutes: float = Field(5.0, gt=0)
    """Minutes between checkpoints: a crash loses no more."""

    keep_checkpoints: int = Field(2, gt=0)
    """Number of checkpoints to keep."""

    trackers: tuple[str, ...] = DEFAULT
    """Programs that record the metrics: tensorboard, and those of plugins. []: none."""

    @model_validator(mode="after")
    def takes_over_from_a_run(self) -> Self:
        """Raise ValueError if `parts` or `lora` is set without the run that has the weights."""
        if self.parts is not None and self.start_from is None:
            raise ValueError("parts are those of an earlier run: set training.from=RUN too")
        if self.lora is not None and self.start_from is None:
            raise ValueError("lora adapts weights of an earlier run: set training.from=RUN too")
        return self

    @model_validator(mode="after")
    def has_an_end(self) -> Self:
        """Raise ValueError if no budget is set."""
        if self.max_minutes is None and self.max_updates is None and self.max_epochs is None:
            raise ValueError("a run needs an end: set max_minutes, max_updates or max_epochs")
        return self

    def replaced(self, **fields: Any) -> Self:
        """Return a copy with these fields replaced, and validate it. Sections stay as they are: a dump of their set
        fields would lose the kind of one that was built without it."""
        declared = type(self).model_fields
        given = {declared[name].alias or name: getattr(self, name) for name in self.model_fields_set}
        return type(self).model_validate({**given, **fields})

    def with_minutes(self, first: FirstRun, targets_per_epoch: int, targets_per_second: float) -> Self:
        """Return a copy with `max_minutes: auto` resolved: by `first`, or to None if the run has another end."""
        if self.max_minutes != "auto":
            return self
        if self.max_updates or self.max_epochs:
            return self.replaced(max_minutes=None)
        per_update = min(self.accumulate * self.batch_tokens, targets_per_epoch)  # an update stays in its epoch
        targets = max(first.epochs * targets_per_epoch, first.least_updates * per_update)
        minutes = targets / targets_per_second / TRAINING_SHARE / 60
        return self.replaced(max_minutes=round(min(first.most_minutes, max(first.least_minutes, minutes)), 1))

    def updates(self, updates_per_epoch: int, seconds_per_update: float) -> int:
        """Return the number of updates that the budget allows: the bound that is reached first."""
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
