"""What is picked for a user who says nothing: from the size of the corpus and the speed of the machine."""

import math
from typing import Any

import torch

from regardant import config as configuration
from regardant.data.parallel import Splits
from regardant.models.config import EncoderDecoderConfig
from regardant.tasks.translation.config import TranslationConfig
from regardant.training.config import TrainingConfig

LEARNING_RATES = {"tiny": 4e-3, "small": 1.5e-3, "base": 7e-4, "big": 5e-4}
"""The peak that suits a preset's width: wider models take smaller steps."""

EPOCHS = 40
"""Passes that a small corpus bears before a regularised model stops learning from it."""

LEAST_UPDATES = 3000
"""However small the corpus."""

MOST_MINUTES = 50.0
"""What a first run may take; whoever wants more sets training.max_minutes."""


def vocab_size_for(num_words: int) -> int:
    """Grows with the root of the corpus: rarer pieces than that are not learned. Words of both sides together."""
    return int(min(32_000, max(300, 8 * math.sqrt(num_words))) // 100 * 100)


def count_words(splits: Splits) -> int:
    """Words between spaces on both sides of the training text."""
    return sum(
        len(text.split())
        for chunk in splits.train.iter(batch_size=10_000)
        for side in ("source", "target")
        for text in chunk[side]
    )


def choose_model(config: EncoderDecoderConfig, num_pairs: int) -> EncoderDecoderConfig:
    """Fill in preset `auto`: as large as the corpus feeds and, on a CPU, as the patience of its owner allows."""
    if config.preset != "auto":
        return config
    thousands = num_pairs / 1000
    if torch.cuda.is_available():
        preset = "tiny" if thousands < 50 else "small" if thousands < 500 else "base"
    else:
        preset = "tiny" if thousands < 200 else "small"
    dropout = 0.3 if thousands < 200 else 0.2 if thousands < 1000 else 0.1
    given = config.model_dump(exclude_unset=True)
    chosen = {"dropout": dropout, "norm": "pre", **given, "preset": preset}
    return configuration.load(EncoderDecoderConfig, chosen, origin=f"model of preset {preset}")


def choose_schedule(config: TranslationConfig, model: EncoderDecoderConfig) -> TrainingConfig:
    """The learning rate that suits the preset, where the recipe leaves the schedule open."""
    training = config.training
    if "schedule" in training.model_fields_set or model.preset is None:
        return training
    schedule = {"kind": "linear", "learning_rate": LEARNING_RATES[str(model.preset)], "warmup_steps": 1000}
    return replaced(training, schedule=schedule)


def choose_minutes(training: TrainingConfig, tokens_per_epoch: int, tokens_per_second: float) -> TrainingConfig:
    """Fill in max_minutes `auto`."""
    if training.max_minutes != "auto":
        return training
    if training.max_updates or training.max_epochs:
        return replaced(training, max_minutes=None)
    tokens = max(EPOCHS * tokens_per_epoch, LEAST_UPDATES * min(training.batch_tokens, tokens_per_epoch))
    minutes = 1.1 * tokens / tokens_per_second / 60  # a tenth for validation
    return replaced(training, max_minutes=round(min(MOST_MINUTES, max(1.0, minutes)), 1))


def replaced(training: TrainingConfig, **fields: Any) -> TrainingConfig:
    """The same with these fields, checked again."""
    given = training.model_dump(by_alias=True, exclude_unset=True)
    return TrainingConfig.model_validate({**given, **fields})
