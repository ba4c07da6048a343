"""The training loop. It knows no task: a job brings the model, its batches and its validation.

An update takes `accumulate` batches of an epoch, normalised by the number of all their targets. Everything that
decides the next update is a pure function of the configuration, the cursor (epoch, batches taken) and the weights, or
is in the checkpoint: an interrupted and resumed run ends bit-equal to an uninterrupted one (equal machine, threads,
precision).
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from regardant.errors import ConfigError, OutOfMemory, RunError, first_line
from regardant.layers.dropout import DropoutKey
from regardant.layers.linear import multiplied, narrow_weights
from regardant.training.averaging import Average
from regardant.training.calm import Calm
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint, save_checkpoint, save_shards
from regardant.training.config import TrainingConfig
from regardant.training.cursor import ADDED, REMOVED, Cursor, Outcome, Update
from regardant.training.devices import MemoryLimit, ran_out_of_memory
from regardant.training.fit import Fit, ValidationStopped
from regardant.training.gradients import MOST_PARTS, add_gradients
from regardant.training.job import Batch, CarriesState, Job, Loss, ReadsShards
from regardant.training.lora import merged
from regardant.training.metrics import selecting_metric
from regardant.training.optimizers import step_where
from regardant.training.processes import ALONE, Act, Group
from regardant.training.reporting import Reporter
from regardant.training.sharded_weights import whole, whole_weights, with_weights, without_weights

if TYPE_CHECKING:
    from lightning_fabric import Fabric

STATE = {"model", "optimizers", "average", "cursor", "waiting"}
"""Keys of every checkpoint. One of a job that carries a state or reads shards has `job` as well; one with a snapshot,
`calm`."""


class Trainer:
    """Trainer of a job's model, from the start or the last checkpoint of a run folder.

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
        self.sharded = self.group.strategy == "fsdp"
        """True if each process has a shard of the model."""
        self.form = without_weights(job.model) if self.sharded and group.leads else None
        """Copy of a sharded model without weights, which rank 0 fills with the whole weights to validate."""
        self.model: Any = fabric.setup_module(job.model)
        self.parameters = list(job.model.parameters())
        """Parameters of the model, listed once: walking through its modules takes a millisecond."""
        self.multiplied = self._multiplied()
        """Weights that are narrowed together for the products of each batch."""
        self.optimizers: list[Any] = [fabric.setup_optimizers(one) for one in config.optimizer.build(job.model)]
        # Built after `setup_module`, which moves the model to its device.
        self.average = config.averaging.build(job.model) if group.leads or self.sharded else Average()
        self.calm = Calm(job.model, self.optimizers, self.average)
        self.cursor = Cursor()
        self.stop_asked = False
        self.validating = False
        self.memory_limit = MemoryLimit()
        self.batches: list[Batch] = []
        """Batches of the last update."""
        self.planned: Sequence[Any] = []
        self.rate = 0.0
        """Learning rate of the last update."""
        self.waiting: list[Update] = []
        """Updates whose numbers are not reported yet."""
        if isinstance(job, ReadsShards):
            job.share(group)
        self._resume()

    def fit(self) -> Outcome:
        """Train until the budget is spent, patience runs out or a signal asks to stop."""
        cursor = self.cursor
        reporter = Reporter(
            self.run,
            update=cursor.update,
            seconds=cursor.seconds,
            unit=self.job.unit,
            others=self.group.others,
            trackers=self.config.trackers,
        )
        with reporter, self._interruptible():
            return Fit(self, reporter).complete()

    def follow(self) -> None:
        """Carry out the acts that rank 0 decides, until it stops."""
        act = {
            Act.UPDATE: self.update,
            Act.GATHER: self.whole_weights,
            Act.GATHER_NEWEST: self.newest_weights,
            Act.SAVE: self._write_checkpoint,
            Act.KEEP: self.calm.keep,
            Act.RETURN: self.calm.restore,
        }
        while (decided := self.decide(Act.STOP)) is not Act.STOP:
            act[decided]()

    def decide(self, act: Act) -> Act:
        """Return the next act of all processes, and set their clocks: both are those of rank 0."""
        decided, self.cursor.seconds = self.group.agree(act, self.cursor.seconds)
        return Act(int(decided))

    def goes_on(self) -> bool:
        """Return whether to make another update, and announce it to the other processes."""
        if self.stop_asked or self._is_over():
            return False
        self.decide(Act.UPDATE)
        return True

    def update(self) -> Update:
        """Make one update of the weights."""
        cursor, config = self.cursor, self.config
        self.batches = [self.job.load(planned) for planned in self._take()]
        cursor.update += 1
        self.rate = config.schedule.rate(cursor.update, self.progress())
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.rate * group.get("factor", 1.0)  # checkpoints of earlier versions have none
        if not self.job.model.training:  # visits every module
            self.model.train()
        self.dropout_key.update = cursor.update
        if self.fabric.device.type == "cuda":  # dry runs have drawn from the generator, as many as the clock allowed
            seed = (self.dropout_key.seed * 1_000_003 + cursor.update) * self.group.size + self.group.rank
            torch.cuda.manual_seed(seed % 2**63)
        plain = self._gradients()
        carried = self.job.own_state(self.group.rank, self.group.size) if isinstance(self.job, CarriesState) else ()
        summed = self.parameters if self.group.strategy == "sum" else []
        self.group.add_up(summed, plain, *carried)
        if self.group.size > 1 and self.group.strategy == "sum":  # rank 0's is in the checkpoint, and decides the masks
            cursor.parts = int(self.group.gathered([cursor.parts]).max())
        norm = self._clip()
        self._step(norm)
        self.average.update(self.job.model)
        return Update(plain, sum(batch.count for batch in self.batches), norm)

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
            # Reported as late as without a checkpoint, so that metrics.jsonl does not depend on checkpoints.
            "waiting": [tuple(update) for update in self.waiting],
            **({"job": self.job.state_dict()} if isinstance(self.job, CarriesState | ReadsShards) else {}),
            **({"calm": self.calm.snapshot} if self.calm.snapshot else {}),
        }

    def whole_weights(self) -> dict[str, Tensor]:
        """Return the averaged weights of a sharded model in rank 0. All processes have to call it."""
        return whole_weights(self.job.model, self.average.weights(), keep=self.group.leads)

    def newest_weights(self) -> dict[str, Tensor]:
        """Return the weights of the last update of a sharded model in rank 0. All processes have to call it."""
        return whole_weights(self.job.model, None, keep=self.group.leads)

    @contextlib.contextmanager
    def validated(self) -> Iterator[nn.Module]:
        """Yield the model in evaluation mode, with its averaged weights and merged low-rank products."""
        self.average.snapshot(self.job.model)
        if self.form is not None:
            self.decide(Act.GATHER)
            yield with_weights(self.form, self.whole_weights())
            return
        self.model.eval()
        with self.average.averaged(self.job.model), merged(self.job.model):
            yield self.job.model

    def save(self) -> None:
        """Write a checkpoint."""
        if self.sharded:
            self.decide(Act.SAVE)
        self._write_checkpoint()

    def _write_checkpoint(self) -> None:
        update, keep = self.cursor.update, self.config.keep_checkpoints
        if self.sharded:
            save_shards(self.run, self.state(), update, keep, self.group)
        else:
            save_checkpoint(self.run, self.state(), update, keep)

    def _multiplied(self) -> list[Tensor]:
        """Return the weights to narrow together: those of linear layers in mixed precision on an accelerator, where
        kernel launches cost."""
        with self.fabric.autocast():
            kind = self.fabric.device.type
            narrow = kind != "cpu" and torch.is_autocast_enabled(kind) and not self.sharded
        return multiplied(self.job.model) if narrow else []

    def _take(self) -> Sequence[Any]:
        """Return the next update's batches. An update stays within one epoch."""
        cursor = self.cursor
        if not self.planned or cursor.batch >= len(self.planned):
            if self.planned:
                cursor.epoch, cursor.batch = cursor.epoch + 1, 0
            self.planned = []  # frees the buffer of a stream before the next is read
            self.planned = self.job.plan(cursor.epoch)
        taken = self.planned[cursor.batch : cursor.batch + self.config.accumulate]
        cursor.batch += len(taken)
        return taken

    def _gradients(self) -> Tensor:
        """Compute the gradients of the update and return its loss. Batches that do not fit into memory are split into
        twice as many parts, for the rest of the run, and from the next update on in all processes."""
        while (plain := self._gradients_if_they_fit()) is None:
            self.job.model.zero_grad(set_to_none=True)  # gradients of the parts that did fit
            # With ddp and fsdp the other ranks wait in the middle of a backward pass, which cannot be repeated.
            together = self.group.size > 1 and self.group.strategy != "sum"
            divisible = self.job.divisible and not isinstance(self.job, CarriesState)
            if together or not divisible or self.cursor.parts == MOST_PARTS:
                raise OutOfMemory(
                    f"a batch of update {self.cursor.update:,} does not fit into memory and cannot be divided further: "
                    "lower training.batch_tokens or model.max_length"
                )
            self.cursor.parts *= 2
        return plain

    def _gradients_if_they_fit(self) -> Tensor | None:
        device = self.fabric.device
        try:
            with self.memory_limit:
                return add_gradients(
                    self.batches,
                    self._loss,
                    self.fabric.backward,
                    key=self.dropout_key,
                    device=device,
                    group=self.group,
                    parts=self.cursor.parts,
                    unsent=self._unsent(),
                )
        except (RuntimeError, MemoryError) as error:
            if not ran_out_of_memory(error):
                raise
            return None

    def _loss(self, part: Batch) -> Loss:
        with narrow_weights(self.multiplied, torch.bfloat16) if self.multiplied else contextlib.nullcontext():
            return self.job.loss(self.model, part, self.fabric.device)

    def _unsent(self) -> Callable[[], contextlib.AbstractContextManager[object]] | None:
        """Return the context of a pass whose gradients are not sent, for `add_gradients`. None: no pass sends."""
        if self.group.strategy == "ddp":
            return lambda: self.fabric.no_backward_sync(self.model)
        # Gradients that are not sent would be whole, and take the memory that sharding saves.
        return contextlib.nullcontext if self.sharded else None

    def _step(self, norm: Tensor) -> None:
        """Let the optimizers step, unless the gradient is not finite."""
        finite = norm.isfinite()
        for optimizer in self.optimizers:
            if norm.device.type != "cpu":
                step_where(optimizer, finite)
            elif finite:
                optimizer.step()
            optimizer.zero_grad()

    def _clip(self) -> Tensor:
        parameters = [parameter for parameter in self.parameters if parameter.grad is not None]
        norm = whole(get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None]))
        if self.config.clip_norm:
            clip_grads_with_norm_(parameters, self.config.clip_norm, norm)
        return norm

    def _is_over(self) -> bool:
        return self.progress() >= 1 or self.cursor.stops(self.config.patience)

    def _resume(self) -> None:
        path = latest_checkpoint(self.run)
        if path is None:
            return
        strategy: Any = self.fabric.strategy
        state = load_checkpoint(path, strategy.device_mesh["data_parallel"] if self.sharded else None)
        if missing := sorted(STATE - state.keys()):
            raise RunError(
                f"{path} was written by another version (no {', '.join(missing)}): train anew in another --out"
            )
        cursor = {name: value for name, value in state["cursor"].items() if name not in REMOVED}
        if cursor.keys() | ADDED != asdict(self.cursor).keys():
            raise RunError(f"{path} was written by another version (its cursor differs): train anew in another --out")
        try:
            if self.sharded:
                from regardant.training.sharded_checkpoints import shard_state

                shard_state(state, self.job.model, self.optimizers)
            self.job.model.load_state_dict(state["model"])
            for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
                optimizer.load_state_dict(saved)
            self.average.load_state_dict(state["average"])
            if isinstance(self.job, CarriesState | ReadsShards):
                self.job.load_state_dict(state["job"])
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            why = first_line(error)
            raise RunError(f"{path} is of another model ({why}): restore it, or train anew in another --out") from error
        self.cursor = Cursor(**cursor)
        self.calm.snapshot = state.get("calm")
        device = self.fabric.device
        self.waiting = [Update(plain.to(device), targets, norm.to(device)) for plain, targets, norm in state["waiting"]]
        self.planned = self.job.plan(self.cursor.epoch)
        self.rate = self.optimizers[0].param_groups[0]["lr"]  # the first group has a factor of 1

    @contextlib.contextmanager
    def stoppable(self) -> Iterator[None]:
        """Raise ValidationStopped as soon as a signal asks to stop, or at once if one has already."""
        self.validating = True
        try:
            if self.stop_asked:
                raise ValidationStopped
            yield
        finally:
            self.validating = False

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let the first Ctrl-C or SIGTERM stop training after the current update, or at once in a validation, and save;
        a second one interrupts as usual."""

        def ask_to_stop(number: int, frame: FrameType | None) -> None:
            self.stop_asked = True
            signal.signal(number, signal.default_int_handler)
            with contextlib.suppress(OSError):  # not through Python's buffer, which the signal may have interrupted
                os.write(2, b"\nstopping and saving a checkpoint; press again to stop without one\n")
            if self.validating:
                raise ValidationStopped

        handlers: dict[int, Any] = {}
        with contextlib.suppress(ValueError):  # not in the main thread: nobody can press Ctrl-C here
            for number in (signal.SIGINT, signal.SIGTERM):
                handlers[number] = signal.signal(number, ask_to_stop)
        try:
            yield
        finally:
            for stopper, handler in handlers.items():
                signal.signal(stopper, handler)


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
