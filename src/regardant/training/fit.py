"""Part of training that rank 0 alone does: reports, validations and checkpoints."""

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from regardant.config.run_files import WEIGHTS
from regardant.errors import Diverged
from regardant.training.calm import act_after
from regardant.training.checkpoints import save_weights
from regardant.training.cursor import Outcome, Update
from regardant.training.gradients import MOST_SKIPPED, save_for_study
from regardant.training.lora import plain_weights
from regardant.training.processes import Act
from regardant.training.reporting import Reporter
from regardant.training.schedules import LOWER_RATE
from regardant.training.sharded_weights import local

if TYPE_CHECKING:
    from regardant.training.engine import Trainer

LOG_EVERY = 10
"""Updates between two lines of metrics: numbers wait on the device until then, so that no step waits for them."""


class ValidationStopped(Exception):
    """A signal interrupted a validation, which the resumed run repeats."""


class Fit:
    """Part of training that rank 0 alone does: reports, validations and checkpoints."""

    def __init__(self, trainer: "Trainer", reporter: Reporter) -> None:
        self.trainer, self.reporter = trainer, reporter
        self.started = time.perf_counter() - trainer.cursor.seconds
        """Reading of the clock at which an uninterrupted run would have started."""
        self.saved = trainer.cursor.seconds
        """The run's seconds at the last checkpoint."""
        self.targets = 0
        """Targets trained on since the start or resume."""

    def complete(self) -> Outcome:
        """Train to the end, or until a signal asks to stop."""
        trainer, cursor = self.trainer, self.trainer.cursor
        if cursor.update:
            self.reporter.log(f"resuming from update {cursor.update:,} of {trainer.run}")
            self._validate_if_due()  # a signal may have stopped that validation
        while trainer.goes_on():
            parts = cursor.parts
            self._record(trainer.update())
            if cursor.parts > parts:
                self.reporter.log(
                    f"update {cursor.update:,} did not fit into memory: from now on a batch is read in {cursor.parts} "
                    "parts, with the same gradients"
                )
            self._validate_if_due()
            if cursor.seconds - self.saved >= 60 * trainer.config.checkpoint_minutes and self._is_sound():
                self._checkpoint()
        if not trainer.stop_asked and cursor.validated_at != cursor.update:
            self._validate()
        self._checkpoint()
        trainer.decide(Act.STOP)
        return Outcome(cursor, not trainer.stop_asked, self.targets, trainer.metric, trainer.config.patience)

    def _record(self, update: Update) -> None:
        trainer = self.trainer
        self.targets += update.targets
        trainer.waiting.append(update)
        trainer.cursor.seconds = time.perf_counter() - self.started
        if trainer.cursor.update % LOG_EVERY == 0:
            self._report()

    def _validate_if_due(self) -> None:
        cursor = self.trainer.cursor
        if cursor.update % self.trainer.job.validate_every == 0 and cursor.validated_at != cursor.update:
            self._validate()

    def _validate(self) -> None:
        """Validate, and keep the weights unless they are worse. After a signal, leave that to the resumed run."""
        self._report()
        trainer, cursor, start = self.trainer, self.trainer.cursor, time.perf_counter()
        job, metric, device = trainer.job, trainer.metric, trainer.fabric.device
        before = trainer.average.state_dict()
        try:
            with (
                trainer.group.undivided(),
                trainer.validated() as model,
                torch.inference_mode(),
                trainer.fabric.autocast(),
            ):
                with trainer.stoppable():
                    numbers = job.validate(model, device)
                    observed = job.observe(model, device)
                if cursor.record(metric.score(numbers[metric.name]), cursor.update, metric.noise):
                    self._save_weights(model, numbers)
        except ValidationStopped:
            trainer.average.load_state_dict(before)
            return
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
        made = self._without_skipped(waiting)
        targets = sum(update.targets for update in waiting)
        trained = sum(update.targets for update in made)
        loss = float(torch.stack([update.plain for update in made]).sum()) / trained if made else math.nan
        self.reporter.train(
            update=cursor.update,
            epoch=cursor.epoch,
            progress=min(1.0, trainer.progress()),
            seconds=cursor.seconds,
            targets=targets,
            loss=loss,
            learning_rate=trainer.rate,
            gradient_norm=float(made[-1].norm) if made else math.nan,
            **({"skipped": cursor.skipped} if cursor.skipped else {}),
        )
        waiting.clear()
        if cursor.skipped_in_a_row >= MOST_SKIPPED or (cursor.skipped_in_a_row and not self._weights_are_finite()):
            self._give_up()  # after the report, which may show the cause
        if trainer.config.spike_factor is not None:
            self._return_after_spike(loss, trainer.config.spike_factor)

    def _return_after_spike(self, loss: float, factor: float) -> None:
        """Keep a snapshot while the loss is normal, and restore it after a spike."""
        trainer, cursor = self.trainer, self.trainer.cursor
        act = act_after(loss, factor, cursor)
        if act is None:
            return
        trainer.decide(act)
        if act is Act.KEEP:
            trainer.calm.keep()
        else:
            trainer.calm.restore()
            self.reporter.log(
                f"update {cursor.update:,}: the loss is {loss:.4g}, more than {factor:g} times its running "
                f"mean {cursor.usual_loss:.4g}: returned to the weights of the last report below that, and skipped the "
                "batches since"
            )

    def _without_skipped(self, waiting: Sequence[Update]) -> list[Update]:
        """Count the skipped updates, and return the others."""
        cursor = self.trainer.cursor
        finite = torch.stack([update.norm for update in waiting]).isfinite().tolist()
        for one in finite:
            cursor.skipped_in_a_row = 0 if one else cursor.skipped_in_a_row + 1
        if not all(finite):
            cursor.skipped += finite.count(False)
            self.reporter.log(
                f"up to update {cursor.update:,}, {cursor.skipped:,} updates were skipped: their gradients were not "
                f"finite; a report that ends with {MOST_SKIPPED} in a row stops the training"
            )
        return [update for update, one in zip(waiting, finite, strict=True) if one]

    def _give_up(self) -> None:
        trainer, cursor = self.trainer, self.trainer.cursor
        path = trainer.run / f"not-finite-{cursor.update:08d}.pt"
        if trainer.sharded:
            trainer.decide(Act.GATHER_NEWEST)
        weights = trainer.newest_weights() if trainer.sharded else trainer.job.model.state_dict()
        save_for_study(path, trainer.batches, weights, update=cursor.update, epoch=cursor.epoch)
        raise Diverged(
            f"the gradients of {cursor.skipped_in_a_row} updates in a row were not finite, the last at update "
            f"{cursor.update:,}, whose batches are kept with the weights in {path}: train anew with "
            f"{LOWER_RATE}"
        )

    def _weights_are_finite(self) -> bool:
        return all(bool(local(parameter).isfinite().all()) for parameter in self.trainer.job.model.parameters())

    def _is_sound(self) -> bool:
        """Return whether the last update was made. If it was skipped, the weights may be the cause."""
        waiting = self.trainer.waiting
        return bool(waiting[-1].norm.isfinite()) if waiting else self.trainer.cursor.skipped_in_a_row == 0

    def _save_weights(self, model: nn.Module, numbers: dict[str, float]) -> None:
        metadata = {name: f"{value:.6g}" for name, value in numbers.items()}
        save_weights(
            self.trainer.run / WEIGHTS,
            plain_weights(model),
            {"update": str(self.trainer.cursor.update), **metadata},
        )

    def _checkpoint(self) -> None:
        self.trainer.save()
        self.saved = self.trainer.cursor.seconds
