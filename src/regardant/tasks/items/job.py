"""Job of tasks that answer items by a head: batches, a loss, and a validation by the task's metrics."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from regardant.modalities import Codec
from regardant.models import Loss, Model
from regardant.tasks.base import READING_COST, TaskJob
from regardant.tasks.items.data import EncodedItems, ItemBatch, ItemBatches, Planned
from regardant.tasks.observation import PROBED, entropy_of_heads

ScoredBatches = Sequence[tuple[Tensor, Tensor]]
"""Scores of the head and targets, batch by batch, on the CPU."""


class ItemsJob(TaskJob):
    """Job that trains on items. `score` returns the metrics of a validation beside the loss."""

    validation_factor: ClassVar[int] = 2
    """Size of a validation batch relative to that of a training batch, which holds gradients too."""

    def __init__(
        self,
        config: Any,
        codec: Codec,
        splits: dict[str, EncodedItems],
        model: Model,
        score: Callable[[ScoredBatches], dict[str, float]] = lambda answers: {},
        *,
        unit: str,
    ) -> None:
        self.score, self.unit, self.seed, self.names = score, unit, config.seed, model.inputs
        budget, max_length = config.training.batch_tokens, model.max_length(model.inputs[0])
        batches = self.batches_of(splits["train"], codec, batch_tokens=budget, max_length=max_length)
        batches.augments = config.augments
        budget *= self.validation_factor
        self.validation = self.batches_of(splits["validation"], codec, batch_tokens=budget, max_length=max_length)
        super().__init__(config, model, batches, validation_cost=READING_COST * self.validation.targets_per_epoch)

    def batches_of(self, split: EncodedItems, codec: Codec, *, batch_tokens: int, max_length: int) -> ItemBatches:
        """Return the batches of a split."""
        return ItemBatches(
            split, codec, batch_tokens=batch_tokens, max_length=max_length, seed=self.seed, names=self.names
        )

    def warm_up_validation(self, device: torch.device) -> None:
        """Run the largest batches of a validation."""
        with torch.inference_mode():
            for planned in self.validation.largest_batches():
                self._answer(self.model, self.validation.load(planned), device)

    def validate(self, model: nn.Module, device: torch.device) -> dict[str, float]:
        """Return the loss per target without label smoothing, and the task's metrics, on the validation set."""
        assert isinstance(model, Model)
        total, count, answers = 0.0, 0, []
        for planned in self.validation.plan(0):
            batch = self.validation.load(planned)
            loss, scores = self._answer(model, batch, device)
            total, count = total + float(loss.plain), count + int(loss.count)
            answers.append((scores.float().cpu(), batch.targets))
        return {**self.score(answers), "loss": total / count}

    def observe(self, model: nn.Module, device: torch.device) -> dict[str, Any]:
        """Return the entropy of every head over a few validation items. Empty for a model without attention."""
        assert isinstance(model, Model)
        planned = Planned(0, 0, np.arange(min(PROBED, len(self.validation.split))))
        inputs = {name: block.to(device) for name, block in self.validation.inputs(planned).items()}
        entropy = entropy_of_heads(model, inputs)
        return {"entropy": entropy} if entropy else {}

    def _answer(self, model: Model, batch: ItemBatch, device: torch.device) -> tuple[Loss, Tensor]:
        batch = batch.to(device)
        vectors = model.vectors(**batch.inputs)
        return model.head.loss(vectors, batch.targets), model.head.scores(vectors)
