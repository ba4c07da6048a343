"""The training loop. It knows no task: a job brings the model, its batches and its validation.

An update takes `accumulate` batches of an epoch, normalised by the number of all their targets. Everything that
decides the next update is a pure function of the configuration, the cursor (epoch, batches taken) and the weights, or
is in the checkpoint: an interrupted and resumed run ends bit-equal to an uninterrupted one (equal machine, threads,
precision).
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from regardant.errors import ConfigError, RunError
from regardant.layers.dropout import DropoutKey
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint, save_checkpoint, save_weights
from regardant.training.config import TrainingConfig
from regardant.training.early_stopping import BestValidation
from regardant.training.job import Batch, CarriesState, Job
from regardant.training.metrics import Metric, selecting_metric
from regardant.training.processes import ALONE, Group
from regardant.training.reporting import Reporter

if TYPE_CHECKING:
    from lightning_fabric import Fabric

LOG_EVERY = 10
"""Updates between two lines of metrics: numbers wait on the device until then, so that no step waits for them."""

STATE = {"model", "optimizers", "average", "cursor", "generator", "waiting"}
"""Keys of every checkpoint. One of a job that carries a state has `job` as well."""


@dataclass
class Cursor(BestValidation):
    """Position of a run, with its best validation."""

    update: int = 0
    epoch: int = 0
    batch: int = 0
    """Batches of this epoch that are consumed."""
    seconds: float = 0.0
    """Training and validation time, over all resumes."""
    validation_seconds: float = 0.0
    validated_at: int = 0
    """The update of the last validation."""


@dataclass(frozen=True)
class Outcome:
    """Result of a training."""

    cursor: Cursor
    finished: bool
    """False: interrupted, and can be resumed."""
    targets: int
    """Targets trained on since the start or resume."""
    metric: Metric
    """The metric that selected the best weights."""

    @property
    def best(self) -> float:
        """Value of that metric for the best weights."""
        return self.metric.score(self.cursor.best)


class Update(NamedTuple):
    """Numbers of one update, on the device."""

    plain: Tensor
    """Loss without regularisation, summed over the targets."""
    targets: int
    norm: Tensor
    """Norm of the gradient before clipping."""


class Trainer:
    """Updates the model of a job, from the start or the last checkpoint of a run folder.

    Call `fit` in the first process and `follow` in the others, once.
    """

    def __init__(
        self,
        job: Job,
        config: TrainingConfig,
        run: Path,
        *,
        fabric: "Fabric",
        dropout_key: DropoutKey,
        seed: int,
        group: Group = ALONE,
    ) -> None:
        self.job, self.config, self.run, self.fabric, self.group = job, config, run, fabric, group
        require_divisible(job, accumulate=config.accumulate, processes=group.size)
        self.metric = selecting_metric(job.metrics, config.best_by)
        self.dropout_key = dropout_key
        dropout_key.seed, dropout_key.rank = seed, group.rank
        self.model: nn.Module
        self.model, *self.optimizers = fabric.setup(job.model, *config.optimizer.build(job.model))
        self.average = config.averaging.build(job.model)  # on the device that the model is on by now
        self.cursor = Cursor()
        self.stop_asked = False
        self.planned: Sequence[Any] = []
        self.rate = 0.0
        """Learning rate of the last update."""
        self.waiting: list[Update] = []
        """Updates whose numbers are not reported yet."""
        self._resume()

    def fit(self) -> Outcome:
        """Train until the budget is spent, patience runs out or a signal interrupts."""
        cursor = self.cursor
        reporter = Reporter(
            self.run, update=cursor.update, seconds=cursor.seconds, unit=self.job.unit, others=self.group.others
        )
        with reporter, self._interruptible():
            return Fit(self, reporter).complete()

    def follow(self) -> None:
        """Share the updates of a training that the first process leads, until that one stops."""
        while self.goes_on():
            self.update()

    def goes_on(self) -> bool:
        """Return whether to make another update. All processes get the answer and the clock of the first one."""
        go, self.cursor.seconds = self.group.agree(not self.stop_asked and not self._is_over(), self.cursor.seconds)
        return bool(go)

    def update(self) -> Update:
        """Make one update of the weights."""
        cursor, config = self.cursor, self.config
        batches: list[Batch] = [self.job.load(planned) for planned in self._take()]
        targets = sum(batch.count for batch in batches)
        cursor.update += 1
        self.rate = config.schedule.rate(cursor.update, self.progress())
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.rate * group.get("factor", 1.0)  # checkpoints of earlier versions have none
        self.model.train()
        plain = torch.zeros((), device=self.fabric.device)
        for number, batch in enumerate(batches):
            self.dropout_key.update, self.dropout_key.micro_batch = cursor.update, number
            part = batch.part(self.group.rank, self.group.size)
            if not part.count:
                continue
            loss = self.job.loss(self.model, part, self.fabric.device)
            self.fabric.backward(loss.total / targets)
            plain += loss.plain.detach()
        carried = self.job.own_state(self.group.rank, self.group.size) if isinstance(self.job, CarriesState) else ()
        self.group.add_up(list(self.job.model.parameters()), plain, *carried)
        norm = self._clip()
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        return Update(plain, targets, norm)

    def progress(self) -> float:
        """Return the spent share of the budget that ends first."""
        cursor, config = self.cursor, self.config
        shares = [0.0]
        if isinstance(config.max_minutes, float):
            shares.append(cursor.seconds / (60 * config.max_minutes))
        if config.max_updates:
            shares.append(cursor.update / config.max_updates)
        if config.max_epochs and self.planned:
            shares.append((cursor.epoch + cursor.batch / len(self.planned)) / config.max_epochs)
        return max(shares)

    def state(self) -> dict[str, Any]:
        """Return everything that resuming needs, as plain containers and tensors."""
        return {
            "model": self.job.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "average": self.average.state_dict(),
            "cursor": asdict(self.cursor),
            "generator": torch.cuda.get_rng_state() if self.fabric.device.type == "cuda" else None,
            # Reported as late as without a checkpoint, so that metrics.jsonl does not depend on checkpoints.
            "waiting": [tuple(update) for update in self.waiting],
            **({"job": self.job.state_dict()} if isinstance(self.job, CarriesState) else {}),
        }

    def _take(self) -> Sequence[Any]:
        """Return the next update's batches. An update stays within one epoch."""
        cursor = self.cursor
        if not self.planned or cursor.batch >= len(self.planned):
            if self.planned:
                cursor.epoch, cursor.batch = cursor.epoch + 1, 0
            self.planned = self.job.plan(cursor.epoch)
        taken = self.planned[cursor.batch : cursor.batch + self.config.accumulate]
        cursor.batch += len(taken)
        return taken

    def _clip(self) -> Tensor:
        parameters = [parameter for parameter in self.job.model.parameters() if parameter.grad is not None]
        norm = get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])
        if self.config.clip_norm:
            clip_grads_with_norm_(parameters, self.config.clip_norm, norm)
        return norm

    def _is_over(self) -> bool:
        return self.progress() >= 1 or self.cursor.stops(self.config.patience)

    def _resume(self) -> None:
        path = latest_checkpoint(self.run)
        if path is None:
            return
        state = load_checkpoint(path)
        if missing := sorted(STATE - state.keys()):
            raise RunError(f"{path} is of another version (no {', '.join(missing)}): train anew in another --out")
        if state["cursor"].keys() != asdict(self.cursor).keys():
            raise RunError(f"{path} is of another version (its cursor): train anew in another --out")
        self.job.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.average.load_state_dict(state["average"])
        self.cursor = Cursor(**state["cursor"])
        if isinstance(self.job, CarriesState):
            self.job.load_state_dict(state["job"])
        device = self.fabric.device
        if device.type == "cuda" and state["generator"] is not None:  # on a CPU dropout depends on the update's number
            torch.cuda.set_rng_state(state["generator"])
        self.waiting = [Update(plain.to(device), targets, norm.to(device)) for plain, targets, norm in state["waiting"]]
        self.planned = self.job.plan(self.cursor.epoch)

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let the first Ctrl-C end the current update and save; a second one is the usual interrupt."""

        def ask_to_stop(number: int, frame: FrameType | None) -> None:
            self.stop_asked = True
            signal.signal(number, signal.default_int_handler)
            with contextlib.suppress(OSError):  # past Python's buffer, in which the signal may have come
                os.write(2, b"\nstopping after this update; press again to discard it\n")

        handlers: dict[int, Any] = {}
        with contextlib.suppress(ValueError):  # not in the main thread: nobody can press Ctrl-C here
            for number in (signal.SIGINT, signal.SIGTERM):
                handlers[number] = signal.signal(number, ask_to_stop)
        try:
            yield
        finally:
            for stopper, handler in handlers.items():
                signal.signal(stopper, handler)


class Fit:
    """The part of a training that only the first process does: reports, validations and checkpoints."""

    def __init__(self, trainer: Trainer, reporter: Reporter) -> None:
        self.trainer, self.reporter = trainer, reporter
        self.started = time.perf_counter() - trainer.cursor.seconds
        """Reading of the clock at which an uninterrupted run would have started."""
        self.saved = trainer.cursor.seconds
        """The run's seconds at the last checkpoint."""
        self.targets = 0
        """Targets trained on since the start or resume."""

    def complete(self) -> Outcome:
        """Train to the end."""
        trainer, cursor = self.trainer, self.trainer.cursor
        if cursor.update:
            self.reporter.log(f"resuming from update {cursor.update:,} of {trainer.run}")
        while trainer.goes_on():
            self._record(trainer.update())
            if cursor.update % trainer.job.validate_every == 0:
                self._validate()
            if cursor.seconds - self.saved >= 60 * trainer.config.checkpoint_minutes:
                self._checkpoint()
        finished = not trainer.stop_asked
        if finished and cursor.validated_at != cursor.update:
            self._validate()
        self._checkpoint()
        return Outcome(cursor, finished, self.targets, trainer.metric)

    def _record(self, update: Update) -> None:
        trainer = self.trainer
        trainer.average.update(trainer.job.model)
        self.targets += update.targets
        trainer.waiting.append(update)
        trainer.cursor.seconds = time.perf_counter() - self.started
        if trainer.cursor.update % LOG_EVERY == 0:
            self._report()

    def _validate(self) -> None:
        self._report()
        trainer, cursor, start = self.trainer, self.trainer.cursor, time.perf_counter()
        job, metric, device = trainer.job, trainer.metric, trainer.fabric.device
        trainer.average.snapshot(job.model)
        trainer.model.eval()
        averaged = trainer.average.averaged(job.model)
        with trainer.group.undivided(), averaged, torch.inference_mode(), trainer.fabric.autocast():
            numbers = job.validate(job.model, device)
            observed = job.observe(job.model, device)
            if cursor.record(metric.score(numbers[metric.name]), cursor.update):
                self._save_weights(numbers)
        took = time.perf_counter() - start
        cursor.validated_at = cursor.update
        cursor.validation_seconds += took
        cursor.seconds = time.perf_counter() - self.started
        best = {f"best_{metric.name}": metric.score(cursor.best)}
        self.reporter.validation(update=cursor.update, seconds=cursor.seconds, took=took, **numbers, **best)
        if observed:
            self.reporter.observation(update=cursor.update, seen=observed)

    def _report(self) -> None:
        trainer, cursor, waiting = self.trainer, self.trainer.cursor, self.trainer.waiting
        if not waiting:
            return
        targets = sum(update.targets for update in waiting)
        self.reporter.train(
            update=cursor.update,
            epoch=cursor.epoch,
            progress=min(1.0, trainer.progress()),
            seconds=cursor.seconds,
            targets=targets,
            loss=float(torch.stack([update.plain for update in waiting]).sum()) / targets,
            learning_rate=trainer.rate,
            gradient_norm=float(waiting[-1].norm),
        )
        self._refuse_infinite_gradients()  # after the report, in which the cause can be looked for
        waiting.clear()

    def _refuse_infinite_gradients(self) -> None:
        waiting = self.trainer.waiting
        if waiting and not torch.stack([update.norm for update in waiting]).isfinite().all():
            raise RunError(
                f"a gradient was not finite, at update {self.trainer.cursor.update:,} or shortly before: train anew "
                "with a lower training.schedule.learning_rate"
            )

    def _save_weights(self, numbers: dict[str, float]) -> None:
        metadata = {name: f"{value:.6g}" for name, value in numbers.items()}
        save_weights(
            self.trainer.run / "model.safetensors",
            self.trainer.job.model.state_dict(),
            {"update": str(self.trainer.cursor.update), **metadata},
        )

    def _checkpoint(self) -> None:
        self._refuse_infinite_gradients()
        trainer = self.trainer
        save_checkpoint(trainer.run, trainer.state(), trainer.cursor.update, trainer.config.keep_checkpoints)
        self.saved = trainer.cursor.seconds


def require_divisible(job: Job, *, accumulate: int, processes: int) -> None:
    """Raise ConfigError if the loss of a job is indivisible and its batches would be divided."""
    if job.divisible:
        return
    if accumulate > 1:
        raise ConfigError(
            f"training.accumulate: given {accumulate}; this task compares the rows of a batch with each other, so a "
            "batch cannot be divided: set training.accumulate=1 and raise training.batch_tokens"
        )
    if processes > 1:
        raise ConfigError(
            f"training.processes: given {processes}; this task compares the rows of a batch with each other, so a "
            "batch cannot be divided: set training.processes=1"
        )
