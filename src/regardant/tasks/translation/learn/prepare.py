"""Translation as a task: what it prepares for the trainer."""

from dataclasses import dataclass
from pathlib import Path

import torch

from regardant.data.tokenizers import TokenizerConfig, Tokenizers
from regardant.errors import ConfigError
from regardant.models import (
    EncoderDecoderConfig,
    SequenceToSequenceConfig,
    SequenceToSequenceModel,
    next_token,
    tokens,
)
from regardant.tasks.base import Log
from regardant.tasks.take_over import load_earlier
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.learn.choices import choose_minutes, choose_model, choose_schedule, choose_vocab_size
from regardant.tasks.translation.learn.corpus import Corpus, prepare
from regardant.tasks.translation.learn.job import TranslationJob
from regardant.tasks.translation.use.translator import Translator
from regardant.training.checkpoints import load_into
from regardant.training.config import TrainingConfig
from regardant.training.devices import require_memory


@dataclass
class Prepared:
    """All that training needs."""

    config: TranslationConfig
    """With everything chosen but what depends on the speed of the machine."""
    job: TranslationJob

    @property
    def fingerprints(self) -> dict[str, str]:
        """Of the pairs, by split."""
        return self.job.corpus.splits.fingerprints

    def with_speed(self, tokens_per_second: float, log: Log) -> TranslationConfig:
        """With budget, schedule and validation chosen too, from the target tokens this machine trains a second."""
        job = self.job
        training = choose_minutes(self.config.training, job.targets_per_epoch, tokens_per_second)
        updates = training.updates(job.updates_per_epoch, job.tokens_per_update / tokens_per_second)
        training = choose_schedule(training, self.config.model, updates)
        if isinstance(training.max_minutes, float) and (left := job.bound_validation(updates)):
            log(f"validation on {left:,} of {len(job.corpus.validation):,} pairs, to stay within a tenth of the time")
        training = training.replaced(validate_every=job.validate_every)
        self.config = self.config.model_copy(update={"training": training})
        log(f"{told_of_schedule(training)}, validation every {job.validate_every:,} updates")
        return self.config


def prepare_training(config: TranslationConfig, run: Path, log: Log) -> Prepared:
    """Read the corpus into the run folder, choose what is left open, build the model from the seed."""
    corpus = prepare(config, run, log)
    tokenizer = choose_vocab_size(config.tokenizer, corpus.tokenizers)
    model_config = choose_model(config.model, len(corpus.train))
    config = config.model_copy(update={"model": model_config, "tokenizer": tokenizer})
    require_memory(lambda: build_model(config, corpus.tokenizers))
    torch.manual_seed(config.seed)
    model = build_model(config, corpus.tokenizers)
    load_earlier(model, config.training, run)
    job = TranslationJob(config, corpus, model)
    log(told_of_corpus(corpus, tokenizer))
    log(told_of_model(model_config))
    for name, batches in (("training", job.batches), ("validation", job.validation)):
        if batches.too_long:
            log(f"{batches.too_long:,} {name} pairs are longer than {batches.longest} tokens and left out")
    return Prepared(config, job)


def told_of_corpus(corpus: Corpus, tokenizer: TokenizerConfig) -> str:
    """One line for people."""
    tests = "".join(f", {len(pairs):,} to test ({name})" for name, pairs in corpus.splits.tests.items())
    sizes = {side.vocab_size for side in (corpus.tokenizers.source, corpus.tokenizers.target)}
    return (
        f"{len(corpus.train):,} pairs to train on, {len(corpus.validation):,} to validate{tests}; "
        f"{tokenizer.kind} vocabulary of {' and '.join(f'{size:,}' for size in sorted(sizes))}"
    )


def told_of_model(config: SequenceToSequenceConfig) -> str:
    """One line for people."""
    if not isinstance(config, EncoderDecoderConfig):
        return f"model {config.kind}"
    return (
        f"model {config.preset or config.kind}: {config.encoder.num_layers} + {config.decoder.num_layers} layers, "
        f"d_model {config.d_model}, {config.num_heads} heads, d_ff {config.d_ff} "
        f"({config.feed_forward.kind}), {config.positions.kind} positions, dropout {config.dropout:g}"
    )


def told_of_schedule(training: TrainingConfig) -> str:
    """One line for people."""
    schedule = training.schedule.model_dump(exclude={"kind"})
    return f"{training.schedule.kind} schedule ({', '.join(f'{name} {value:g}' for name, value in schedule.items())})"


def build_model(config: TranslationConfig, tokenizers: Tokenizers) -> SequenceToSequenceModel:
    """The model a configuration describes, with fresh weights. Raises ConfigError where the vocabularies do not fit."""
    try:
        source, target = tokenizers.source.vocab_size, tokenizers.target.vocab_size
        head = next_token(target, config.training.label_smoothing, config.training.z_loss)
        return config.model.build(tokens(source), tokens(target), head)
    except ValueError as error:
        raise ConfigError(f"model: {error}") from error


def load_translator(config: TranslationConfig, run: Path, device: torch.device) -> Translator:
    """The translator that a run has become. Raises RunError where the run is not whole."""
    tokenizers = Tokenizers.load(run / "tokenizer.json")
    model = build_model(config, tokenizers)
    load_into(model, run / "model.safetensors")
    return Translator(model, tokenizers, device)
