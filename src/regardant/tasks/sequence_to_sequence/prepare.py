"""Preparation of tasks that answer an item by a text: the job of a recipe, and the settings that it leaves open, chosen
from the size of the corpus and the speed of the machine."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regardant import config as configuration
from regardant.attention import AttentionConfig
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.errors import ConfigError
from regardant.layers.dropout import take_rates
from regardant.modalities import Codec
from regardant.modalities.text import TextCodec
from regardant.models import EncoderDecoderConfig, SequenceToSequenceConfig, SequenceToSequenceModel, next_token, tokens
from regardant.tasks.base import Log
from regardant.tasks.sequence_to_sequence.config import TextAnswerConfig
from regardant.tasks.sequence_to_sequence.corpus import Corpus
from regardant.tasks.sequence_to_sequence.job import SequenceToSequenceJob
from regardant.tasks.take_over import with_first_weights
from regardant.training.config import FirstRun, NextTokenTraining, TrainingConfig
from regardant.training.optimizers import MuonConfig

LEARNING_RATES = {"tiny": 4e-3, "small": 1.5e-3, "base": 7e-4, "big": 5e-4, "recurrent": 2e-3, "one_to_one": 2e-3}
"""Peak learning rate of Adam by preset, or by kind of model: wider models take smaller steps."""

MUON_FACTOR = 3.0
"""Peak learning rate of Muon over that of Adam: docs/decisions/0005 compares peaks for `tiny`; other models were not
compared."""

MUON_DECAY = 0.1
"""Weight decay of Muon, where this module chooses the optimizer; see docs/decisions/0005."""

SMALL_BATCH = 2048
"""Tokens of a batch if preset `auto` chooses the model for a small corpus, so that an epoch has enough updates."""

LONGEST_WARMUP = 1000
"""Maximum number of warm-up updates. A short run warms up for a quarter of its updates."""

FIRST_RUN = FirstRun(epochs=60, least_updates=3000, least_minutes=1.0, most_minutes=43.0)
"""Budget of a recipe that leaves it open; see docs/decisions/0005."""


DROPOUTS = ((8, 0.1), (40, 0.2), (math.inf, 0.3))
"""Dropout by number of passes over the text, each up to a number: a short run has no time to overfit."""


@dataclass
class PreparedPairs:
    """Resolved recipe of a task over pairs. Implements `tasks.base.Prepared`."""

    config: Any
    """Configuration with all settings resolved but those that depend on the training speed."""
    job: SequenceToSequenceJob
    leaves_dropout_open: bool = False
    """True if the number of passes decides the dropout."""

    @property
    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of the pairs, by split."""
        return self.job.corpus.fingerprints

    def with_speed(self, tokens_per_second: float, log: Log) -> Any:
        """Resolve budget, schedule and validation from the measured training speed, in target tokens."""
        job = self.job
        training = self.config.training.with_minutes(FIRST_RUN, job.targets_per_epoch, tokens_per_second)
        updates = training.updates(job.updates_per_epoch, job.targets_per_update / tokens_per_second)
        training = choose_schedule(training, self.config.model, updates)
        if isinstance(training.max_minutes, float) and (left := job.bound_validation(updates)):
            log(f"validation on {left:,} of {len(job.corpus.validation):,} pairs, to stay within a tenth of the time")
        training = training.replaced(validate_every=job.validate_every)
        self.config = self.config.model_copy(update={"training": training})
        if self.leaves_dropout_open:
            passes = updates / job.updates_per_epoch * len(job.batches.kept) / job.corpus.size
            self._set_dropout(choose_dropout(passes))
            log(f"dropout {self.config.model.dropout:g}, since {passes:,.1f} passes over the text are planned")
        log(f"{describe_training(training)}, validation every {job.validate_every:,} updates")
        return self.config

    def _set_dropout(self, rate: float) -> None:
        model = self.config.model.model_copy(update={"dropout": rate})
        self.config = self.config.model_copy(update={"model": model})
        with torch.device("meta"):  # no weight is drawn
            like = build_model(self.config, self.job.corpus.codec, self.job.corpus.tokenizer.vocab_size)
        take_rates(self.job.model, like)


def prepare(
    config: TextAnswerConfig,
    corpus: Corpus,
    run: Path,
    log: Log,
    job_of: Callable[[Any, Any, SequenceToSequenceModel], SequenceToSequenceJob] = SequenceToSequenceJob,
) -> PreparedPairs:
    """Resolve open settings, build the model from the seed, and load the weights that it takes over."""
    tokenizer = choose_vocab_size(config.tokenizer, vocabulary_sizes(corpus))
    model_config = choose_model(config.model, corpus.size)
    training = choose_for_small_model(config.training, config.model, model_config)
    leaves_dropout_open = model_config is not config.model and "dropout" not in config.model.model_fields_set
    config = config.model_copy(update={"model": model_config, "tokenizer": tokenizer, "training": training})
    model = with_first_weights(lambda: build_model(config, corpus.codec, corpus.tokenizer.vocab_size), config, run)
    job = job_of(config, corpus, model)
    log(describe_corpus(corpus, tokenizer))
    log(describe_model(model_config, with_dropout=not leaves_dropout_open))
    for name, batches in (("training", job.batches), ("validation", job.validation)):
        if batches.too_long:
            log(f"{batches.too_long:,} {name} pairs are longer than {batches.longest} tokens and left out")
    return PreparedPairs(config, job, leaves_dropout_open)


def build_model(config: TextAnswerConfig, codec: Codec, vocab_size: int) -> SequenceToSequenceModel:
    """Return the model of a recipe with fresh weights. Raises ConfigError if its parts do not fit."""
    try:
        head = next_token(vocab_size, config.training.label_smoothing, config.training.z_loss, config.head)
        return config.model.build(codec.representation(), tokens(vocab_size), head)
    except ValueError as error:
        raise ConfigError(f"model: {error}") from error


def vocabulary_sizes(corpus: Corpus) -> list[int]:
    """Return the sizes of the learned vocabularies, the smallest first."""
    sizes = {corpus.tokenizer.vocab_size}
    if isinstance(corpus.codec, TextCodec):
        sizes.add(corpus.codec.tokenizer.vocab_size)
    return sorted(sizes)


def describe_corpus(corpus: Corpus, tokenizer: TokenizerConfig) -> str:
    """Return one line for people."""
    tests = "".join(f", {count:,} to test ({name})" for name, count in corpus.tests.items())
    return (
        f"{len(corpus.train):,} pairs to train on, {len(corpus.validation):,} to validate{tests}; "
        f"{tokenizer.kind} vocabulary of {' and '.join(f'{size:,}' for size in vocabulary_sizes(corpus))}"
    )


def describe_model(config: SequenceToSequenceConfig, *, with_dropout: bool) -> str:
    """Return one line for people."""
    if not isinstance(config, EncoderDecoderConfig):
        return f"model {config.kind}"
    dropout = f", dropout {config.dropout:g}" if with_dropout else ""
    return (
        f"model {config.preset or config.kind}: {config.encoder.num_layers} + {config.decoder.num_layers} layers, "
        f"d_model {config.d_model}, {config.num_heads} heads, d_ff {config.d_ff} "
        f"({config.feed_forward.kind}), {config.positions.kind} positions{dropout}"
    )


def describe_training(training: TrainingConfig) -> str:
    """Return one line for people."""
    schedule = training.schedule.model_dump(exclude={"kind"})
    schedule_fields = ", ".join(f"{name} {value:g}" for name, value in schedule.items())
    return (
        f"optimizer {training.optimizer.kind}, batches of {training.batch_tokens:,} tokens, "
        f"{training.schedule.kind} schedule ({schedule_fields})"
    )


def vocab_size_for(num_words: int) -> int:
    """Return a vocabulary size that grows with the square root of the corpus, so that no piece is too rare to learn."""
    return int(min(32_000, max(300, 8 * math.sqrt(num_words))) // 100 * 100)


def count_words(texts: Iterable[str]) -> int:
    """Return the number of words between white space."""
    return sum(len(text.split()) for text in texts)


def choose_vocab_size(config: TokenizerConfig, learned: list[int]) -> TokenizerConfig:
    """Fill in the learned vocabulary size if the recipe leaves the size open."""
    if config.vocab_size is not None or config.kind == "byte":
        return config
    return config.model_copy(update={"vocab_size": max(learned)})


def choose_model(config: SequenceToSequenceConfig, num_pairs: int) -> SequenceToSequenceConfig:
    """Resolve preset `auto`: a model that suits the size of the corpus, and on a CPU one that trains fast enough.

    Its feed-forward networks are gated, and its positions are rotary where all layers have queries and keys.
    """
    if not isinstance(config, EncoderDecoderConfig) or config.preset != "auto":
        return config
    thousands = num_pairs / 1000
    if torch.cuda.is_available():
        preset = "tiny" if thousands < 50 else "small" if thousands < 500 else "base"
    else:
        preset = "tiny" if thousands < 200 else "small"
    given = config.model_dump(exclude_unset=True)
    chosen = {"norm": "pre", "feed_forward": {"kind": "gated"}, **given, "preset": preset}
    if all(isinstance(stack.self_attention, AttentionConfig) for stack in (config.encoder, config.decoder)):
        chosen = {"positions": {"kind": "rotary"}, **chosen}
    return configuration.load(EncoderDecoderConfig, chosen, origin=f"model of preset {preset}")


def choose_for_small_model(
    training: NextTokenTraining, asked: SequenceToSequenceConfig, chosen: SequenceToSequenceConfig
) -> NextTokenTraining:
    """Set `batch_tokens` to SMALL_BATCH and the optimizer to Muon, each where the recipe leaves it open, if preset
    `auto` chose tiny. Models that are sharded keep Adam, since Muon needs whole matrices."""
    if asked is chosen or not isinstance(chosen, EncoderDecoderConfig) or chosen.preset != "tiny":
        return training
    fields: dict[str, Any] = {"batch_tokens": SMALL_BATCH}
    if training.strategy != "fsdp":
        fields["optimizer"] = MuonConfig(weight_decay=MUON_DECAY)
    return training.replaced(**{name: fields[name] for name in fields.keys() - training.model_fields_set})


def choose_dropout(passes: float) -> float:
    """Return the dropout of a run of so many passes over the text."""
    return next(rate for most, rate in DROPOUTS if passes <= most)


def choose_schedule(training: TrainingConfig, model: SequenceToSequenceConfig, updates: int) -> TrainingConfig:
    """Fill in a learning rate for the model and the optimizer, and a warm-up for the length of the run, if the recipe
    leaves the schedule open. A model that has no learning rate here keeps the schedule of the recipe."""
    name = model.preset if isinstance(model, EncoderDecoderConfig) else model.kind
    if "schedule" in training.model_fields_set or name not in LEARNING_RATES:
        return training
    warmup_steps = max(1, min(LONGEST_WARMUP, updates // 4))
    factor = MUON_FACTOR if isinstance(training.optimizer, MuonConfig) else 1.0
    schedule = {"kind": "linear", "learning_rate": factor * LEARNING_RATES[name], "warmup_steps": warmup_steps}
    return training.replaced(schedule=schedule)
