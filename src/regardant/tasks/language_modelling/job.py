"""Language modelling as the trainer sees it: windows of a text, a loss, a validation on all of the text kept for it."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from regardant.data.text import EncodedText
from regardant.data.windows import TrainingWindows, WindowBatch
from regardant.evaluation.language import BATCH_TOKENS, score_text
from regardant.models import CausalModel
from regardant.models.heads import Loss
from regardant.tasks.language_modelling.config import LanguageModellingConfig

READING_COST = 1 / 3
"""What a token costs to validate, in training tokens: the forward pass alone."""

VALIDATION_SHARE = 0.1
"""The most of a run's time that validation may take."""


class LanguageModellingJob:
    """Implements `tasks.base.TaskJob`."""

    unit = "target token"
    divisible = True

    def __init__(self, config: LanguageModellingConfig, text: EncodedText, model: CausalModel) -> None:
        self.config, self.text, self.model = config, text, model
        batch_tokens = config.training.batch_tokens
        self.batches = TrainingWindows(
            text.tokens["train"], context=config.model.max_length, batch_tokens=batch_tokens, seed=config.seed
        )
        cost = READING_COST * len(text.tokens["validation"])
        interval = max(10, math.ceil(cost / VALIDATION_SHARE / (self.targets_per_epoch / self.updates_per_epoch)))
        self.validate_every = config.training.validate_every or interval
        self.metrics = config.metrics

    @property
    def targets_per_epoch(self) -> int:
        """Number of predicted tokens in an epoch."""
        return self.batches.targets_per_epoch

    @property
    def updates_per_epoch(self) -> int:
        """The last one has what is left."""
        return math.ceil(len(self.plan(0)) / self.config.training.accumulate)

    def plan(self, epoch: int) -> Sequence[Any]:
        return self.batches.plan(epoch)

    def load(self, planned: Any) -> WindowBatch:
        return self.batches.load(planned)

    def loss(self, model: nn.Module, batch: WindowBatch, device: torch.device) -> Loss:
        batch = batch.to(device)
        loss: Loss = model(**batch.inputs, targets=batch.targets)
        return loss

    def warm_up_validation(self, device: torch.device) -> None:
        """Run the first batch of a validation, which may be larger than those of training."""
        score_text(self.model, self.text.tokens["validation"][: BATCH_TOKENS + 1], 2, device)

    def validate(self, model: nn.Module, device: torch.device) -> dict[str, float]:
        """Loss in nats a token, perplexity and bits a character of the whole validation text."""
        assert isinstance(model, CausalModel)
        score = score_text(model, self.text.tokens["validation"], self.text.characters["validation"], device)
        return {
            "loss": score.loss,
            "perplexity": score.perplexity,
            "bits_per_character": score.bits_per_character,
        }

    def observe(self, model: nn.Module, device: torch.device) -> dict[str, Any]:
        """Nothing yet."""
        return {}
