"""The training loop. It knows no task: a job brings the model, its batches and its validation.

An update takes `accumulate` batches of an epoch, normalised by all their real targets together. Everything that
decides the next update is a pure function of the configuration, the cursor (epoch, batches taken) and the weights, or
is in the checkpoint: a run that was interrupted ends bit-equal to one that was not (equal machine, threads, precision).
"""

import contextlib
import math
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, Self

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from regardant.errors import RunError
from regardant.layers.dropout import DropoutKey
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint, save_checkpoint, save_weights
from regardant.training.config import TrainingConfig
from regardant.training.processes import ALONE, Group
from regardant.training.reporting import Reporter

if TYPE_CHECKING:
    from lightning_fabric import Fabric

LOG_EVERY = 10
"""Updates between two lines of metrics: numbers wait on the device until then, so that no step waits for them."""


STATE = {"model", "optimizers", "average", "cursor", "generator", "waiting"}
"""What a checkpoint holds."""


class Loss(Protocol):
    """Sums over targets."""

    @property
    def total(self) -> Tensor:
        """What is minimised, summed over the targets."""

    @property
    def plain(self) -> Tensor:
        """Their plain cross-entropy, without label smoothing and z-loss."""


class Batch(Protocol):
    """What the model's forward takes."""

    @property
    def target_tokens(self) -> int:
        """Real targets in it, known before any computing."""

    def part(self, number: int, parts: int) -> Self:
        """Every so manieth of its rows, from this number on; none where there are fewer rows."""


class Job(Protocol):
    """What a task hands to the trainer."""

    @property
    def model(self) -> nn.Module:
        """Its forward gives the Loss of a batch."""

    def plan(self, epoch: int) -> Sequence[Any]:
        """What the batches of an epoch are made of: a pure function of seed and epoch."""

    def load(self, planned: Any) -> Any:
        """One of them: a Batch, on the CPU."""

    def loss(self, model: nn.Module, batch: Any, device: torch.device) -> Loss:
        """The loss of a batch through `model`, which may be wrapped for precision and devices."""

    def validate(self, model: nn.Module, device: torch.device) -> dict[str, float]:
        """Numbers on the validation set, `loss` among them; those to be maximised are all others."""

    def observe(self, model: nn.Module, device: torch.device) -> dict[str, Any]:
        """What else is to be seen of the model after a validation, as JSON has it; empty for nothing."""

    validate_every: int
    """Updates between validations."""


@dataclass
class Cursor:
    """Where a run stands."""

    update: int = 0
    epoch: int = 0
    batch: int = 0
    """Batches of this epoch that are consumed."""
    seconds: float = 0.0
    """Of training and validation, over all resumes."""
    validation_seconds: float = 0.0
    best: float = -math.inf
    best_update: int = 0
    without_better: int = 0
    """Validations since the best one."""
    validated_at: int = 0
    """The update of the last validation."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    cursor: Cursor
    finished: bool
    """False: interrupted, and can be resumed."""
    targets: int
    """Real target tokens trained on since the start or resume."""


class Trainer:
    """Trains a job in a run folder, from its start or its last checkpoint. Use `fit` once: `follow` in all processes
    but the first."""

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
        self.dropout_key = dropout_key
        dropout_key.seed, dropout_key.rank = seed, group.rank
        self.model: nn.Module
        self.model, *self.optimizers = fabric.setup(job.model, *config.optimizer.build(job.model))
        self.average = config.averaging.build(job.model)  # where the model now is
        self.cursor = Cursor()
        self.targets = 0
        self.stop_asked = False
        self.planned: Sequence[Any] = []
        self.waiting: list[tuple[Tensor, int, Tensor]] = []
        self._resume()

    def fit(self) -> Outcome:
        """Train until the budget is spent, patience is lost or somebody interrupts."""
        cursor = self.cursor
        reporter = Reporter(self.run, update=cursor.update, seconds=cursor.seconds, others=self.group.others)
        with reporter as self.reporter, self._interruptible():
            if cursor.update:
                self.reporter.say(f"going on from update {cursor.update:,} of {self.run}")
            self.started = time.perf_counter() - cursor.seconds
            self.saved = cursor.seconds
            while self._goes_on():
                self._take_stock(*self._update())
                if cursor.update % self.job.validate_every == 0:
                    self._validate()
                self._checkpoint_if_due()
            finished = not self.stop_asked
            if finished and cursor.validated_at != cursor.update:
                self._validate()
            self._checkpoint()
        return Outcome(cursor, finished, self.targets)

    def follow(self) -> None:
        """Share the updates of a training that the first process leads, as long as that one goes on."""
        while self._goes_on():
            self._update()

    def _goes_on(self) -> bool:
        """The first process decides for all, and its clock is everybody's."""
        go, self.cursor.seconds = self.group.agree(not self.stop_asked and not self._is_over(), self.cursor.seconds)
        return bool(go)

    def _update(self) -> tuple[Tensor, int, Tensor]:
        """The loss summed over its targets, how many these are, and the norm of the gradient."""
        cursor, config = self.cursor, self.config
        batches: list[Batch] = [self.job.load(planned) for planned in self._take()]
        targets = sum(batch.target_tokens for batch in batches)
        cursor.update += 1
        rate = config.schedule.rate(cursor.update, self._progress())
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
        self.model.train()
        plain = torch.zeros((), device=self.fabric.device)
        for number, batch in enumerate(batches):
            self.dropout_key.update, self.dropout_key.micro_batch = cursor.update, number
            part = batch.part(self.group.rank, self.group.size)
            if not part.target_tokens:
                continue
            loss = self.job.loss(self.model, part, self.fabric.device)
            self.fabric.backward(loss.total / targets)
            plain += loss.plain.detach()
        self.group.add_up(list(self.job.model.parameters()), plain)
        norm = self._clip()
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        return plain, targets, norm

    def _take_stock(self, plain: Tensor, targets: int, norm: Tensor) -> None:
        """What the first process keeps of an update."""
        self.average.update(self.job.model)
        self.targets += targets
        self.waiting.append((plain, targets, norm))
        self.cursor.seconds = time.perf_counter() - self.started
        if self.cursor.update % LOG_EVERY == 0:
            self._report()

    def _take(self) -> Sequence[Any]:
        """The next update's share of the epoch; a new epoch begins where one is used up."""
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

    def _progress(self) -> float:
        """The share of the budget that is spent: of the one that is nearest its end."""
        cursor, config = self.cursor, self.config
        shares = [0.0]
        if isinstance(config.max_minutes, float):
            shares.append(cursor.seconds / (60 * config.max_minutes))
        if config.max_updates:
            shares.append(cursor.update / config.max_updates)
        if config.max_epochs and self.planned:
            shares.append((cursor.epoch + cursor.batch / len(self.planned)) / config.max_epochs)
        return max(shares)

    def _is_over(self) -> bool:
        patience = self.config.patience
        return self._progress() >= 1 or (patience is not None and self.cursor.without_better >= patience)

    def _validate(self) -> None:
        self._report()
        cursor, start = self.cursor, time.perf_counter()
        self.average.snapshot(self.job.model)
        self.model.eval()
        averaged = self.average.averaged(self.job.model)
        with self.group.undivided(), averaged, torch.inference_mode(), self.fabric.autocast():
            numbers = self.job.validate(self.job.model, self.fabric.device)
            seen = self.job.observe(self.job.model, self.fabric.device)
            score = -numbers["loss"] if self.config.best_by == "loss" else numbers[self.config.best_by]
            cursor.without_better += 1
            if score > cursor.best or not cursor.best_update:
                cursor.best, cursor.best_update, cursor.without_better = score, cursor.update, 0
                self._save_weights(numbers)
        took = time.perf_counter() - start
        cursor.validated_at = cursor.update
        cursor.validation_seconds += took
        cursor.seconds = time.perf_counter() - self.started
        best = {f"best_{self.config.best_by}": abs(cursor.best)}
        self.reporter.validation(update=cursor.update, seconds=cursor.seconds, took=took, **numbers, **best)
        if seen:
            self.reporter.observation(update=cursor.update, seen=seen)

    def _report(self) -> None:
        if not self.waiting:
            return
        targets = sum(count for _, count, _ in self.waiting)
        loss = float(torch.stack([plain for plain, _, _ in self.waiting]).sum()) / targets
        self.reporter.train(
            update=self.cursor.update,
            epoch=self.cursor.epoch,
            progress=min(1.0, self._progress()),
            seconds=self.cursor.seconds,
            tokens=targets,
            loss=loss,
            learning_rate=self.optimizers[0].param_groups[0]["lr"],
            gradient_norm=float(self.waiting[-1][2]),
        )
        self._refuse_infinite_gradients()  # told before, so that whoever looks for the cause finds it
        self.waiting.clear()

    def _refuse_infinite_gradients(self) -> None:
        if self.waiting and not torch.stack([norm for *_, norm in self.waiting]).isfinite().all():
            raise RunError(
                f"a gradient was not finite, at update {self.cursor.update:,} or shortly before: train anew with a "
                "lower training.schedule.learning_rate"
            )

    def _save_weights(self, numbers: dict[str, float]) -> None:
        told = {name: f"{value:.6g}" for name, value in numbers.items()}
        save_weights(
            self.run / "model.safetensors",
            self.job.model.state_dict(),
            {"update": str(self.cursor.update), **told},
        )

    def _checkpoint_if_due(self) -> None:
        if self.cursor.seconds - self.saved >= 60 * self.config.checkpoint_minutes:
            self._checkpoint()

    def _checkpoint(self) -> None:
        self._refuse_infinite_gradients()
        state = {
            "model": self.job.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "average": self.average.state_dict(),
            "cursor": asdict(self.cursor),
            "generator": torch.cuda.get_rng_state() if self.fabric.device.type == "cuda" else None,
            "waiting": self.waiting,  # told when it would have been, so that metrics.jsonl shows no checkpoints
        }
        save_checkpoint(self.run, state, self.cursor.update, self.config.keep_checkpoints)
        self.saved = self.cursor.seconds

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
        device = self.fabric.device
        if device.type == "cuda" and state["generator"] is not None:  # a CPU's dropout draws from the update's number
            torch.cuda.set_rng_state(state["generator"])
        self.waiting = [(plain.to(device), targets, norm.to(device)) for plain, targets, norm in state["waiting"]]
        self.planned = self.job.plan(self.cursor.epoch)

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """The first Ctrl-C ends the update at hand and saves; a second one is the usual interrupt."""

        def ask_to_stop(number: int, frame: FrameType | None) -> None:
            self.stop_asked = True
            signal.signal(number, signal.default_int_handler)
            with contextlib.suppress(OSError):  # past Python's buffer, in which the signal may have come
                os.write(2, b"\nstopping after this update; press again to drop it\n")

        handlers: dict[int, Any] = {}
        with contextlib.suppress(ValueError):  # not in the main thread: nobody can press Ctrl-C here
            for number in (signal.SIGINT, signal.SIGTERM):
                handlers[number] = signal.signal(number, ask_to_stop)
        try:
            yield
        finally:
            for stopper, handler in handlers.items():
                signal.signal(stopper, handler)


def dry_run(
    job: Job, planned: Any, device: torch.device, processes: int = 1, through: nn.Module | None = None
) -> float:
    """Forward and backward of one process's part of a batch, without an update; how many seconds it took.
    `through` is the job's model compiled, if it is."""
    start = _finished_at(device)
    batch: Batch = job.load(planned)
    loss = job.loss(job.model if through is None else through, batch.part(0, processes), device)
    loss.total.backward()
    job.model.zero_grad(set_to_none=True)
    return _finished_at(device) - start


def _finished_at(device: torch.device) -> float:
    """The clock once all that was asked of the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()
