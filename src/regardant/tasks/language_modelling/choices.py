"""What is picked for a user who says nothing: from the size of the text and the speed of the machine."""

import math

from regardant.models import CausalConfig
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.recurrent import RecurrentLanguageModelConfig
from regardant.tasks.language_modelling.config import TextTrainingConfig

EPOCHS = 10
"""Passes over a text after which a small model without dropout learns little more of it that is true elsewhere."""

LEAST_UPDATES = 2000
"""However short the text."""

MOST_MINUTES = 50.0
"""What a first run may take; whoever wants more sets training.max_minutes."""


def choose_schedule(training: TextTrainingConfig, model: CausalConfig) -> TextTrainingConfig:
    """Fill in the learning rate that suits the model's width, where the recipe leaves the schedule open."""
    if "schedule" in training.model_fields_set:
        return training
    if isinstance(model, DecoderOnlyConfig):
        width = model.d_model
    elif isinstance(model, RecurrentLanguageModelConfig):
        width = model.hidden_size
    else:
        return training
    rate = round(4e-3 * math.sqrt(128 / width), 6)  # wider models take smaller steps
    return training.replaced(schedule={"kind": "linear", "learning_rate": rate, "warmup_steps": 100})


def choose_minutes(training: TextTrainingConfig, tokens_per_epoch: int, tokens_per_second: float) -> TextTrainingConfig:
    """Fill in max_minutes `auto`."""
    if training.max_minutes != "auto":
        return training
    if training.max_updates or training.max_epochs:
        return training.replaced(max_minutes=None)
    tokens = max(EPOCHS * tokens_per_epoch, LEAST_UPDATES * min(training.batch_tokens, tokens_per_epoch))
    minutes = 1.1 * tokens / tokens_per_second / 60  # a tenth for validation
    return training.replaced(max_minutes=round(min(MOST_MINUTES, max(1.0, minutes)), 1))
