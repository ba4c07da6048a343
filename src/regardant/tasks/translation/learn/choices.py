"""What is picked for a user who says nothing: from the size of the corpus and the speed of the machine."""

import math

import torch

from regardant import config as configuration
from regardant.attention import AttentionConfig
from regardant.data.parallel import Splits
from regardant.data.tokenizers import TokenizerConfig, Tokenizers
from regardant.models import EncoderDecoderConfig, SequenceToSequenceConfig
from regardant.training.config import TrainingConfig

LEARNING_RATES = {"tiny": 4e-3, "small": 1.5e-3, "base": 7e-4, "big": 5e-4, "recurrent": 2e-3, "one_to_one": 2e-3}
"""The peak that suits a preset's width, or a kind of model: wider models take smaller steps."""

LONGEST_WARMUP = 1000
"""Updates; a short run takes a quarter of its own."""

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


def choose_vocab_size(config: TokenizerConfig, made: Tokenizers) -> TokenizerConfig:
    """What was made of a size that the recipe leaves open."""
    if config.vocab_size is not None or config.kind == "byte":
        return config
    return config.model_copy(update={"vocab_size": max(made.source.vocab_size, made.target.vocab_size)})


def choose_model(config: SequenceToSequenceConfig, num_pairs: int) -> SequenceToSequenceConfig:
    """Fill in preset `auto`: as large as the corpus feeds and, on a CPU, as the patience of its owner allows.

    Its networks are gated, and its positions turn queries and keys where all layers have them.
    """
    if not isinstance(config, EncoderDecoderConfig) or config.preset != "auto":
        return config
    thousands = num_pairs / 1000
    if torch.cuda.is_available():
        preset = "tiny" if thousands < 50 else "small" if thousands < 500 else "base"
    else:
        preset = "tiny" if thousands < 200 else "small"
    dropout = 0.3 if thousands < 200 else 0.2 if thousands < 1000 else 0.1
    given = config.model_dump(exclude_unset=True)
    chosen = {"dropout": dropout, "norm": "pre", "feed_forward": {"kind": "gated"}, **given, "preset": preset}
    if all(isinstance(stack.self_attention, AttentionConfig) for stack in (config.encoder, config.decoder)):
        chosen = {"positions": {"kind": "rotary"}, **chosen}
    return configuration.load(EncoderDecoderConfig, chosen, origin=f"model of preset {preset}")


def choose_schedule(training: TrainingConfig, model: SequenceToSequenceConfig, updates: int) -> TrainingConfig:
    """The learning rate that suits the model and the length of the run, where the recipe leaves the schedule open."""
    name = model.preset if isinstance(model, EncoderDecoderConfig) else model.kind
    if "schedule" in training.model_fields_set or name is None:
        return training
    warmup_steps = max(1, min(LONGEST_WARMUP, updates // 4))
    schedule = {"kind": "linear", "learning_rate": LEARNING_RATES[name], "warmup_steps": warmup_steps}
    return training.replaced(schedule=schedule)


def choose_minutes(training: TrainingConfig, tokens_per_epoch: int, tokens_per_second: float) -> TrainingConfig:
    """Fill in max_minutes `auto`."""
    if training.max_minutes != "auto":
        return training
    if training.max_updates or training.max_epochs:
        return training.replaced(max_minutes=None)
    tokens = max(EPOCHS * tokens_per_epoch, LEAST_UPDATES * min(training.batch_tokens, tokens_per_epoch))
    minutes = 1.1 * tokens / tokens_per_second / 60  # a tenth for validation
    return training.replaced(max_minutes=round(min(MOST_MINUTES, max(1.0, minutes)), 1))
