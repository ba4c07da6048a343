"""Translation as a task: what it prepares for the trainer, and what a finished run gives."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from regardant.data.tokenizers import Tokenizers
from regardant.errors import ConfigError, RunError
from regardant.models.encoder_decoder import EncoderDecoder
from regardant.tasks.translation.choices import choose_minutes, choose_model, choose_schedule
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.corpus import prepare
from regardant.tasks.translation.job import TranslationJob
from regardant.tasks.translation.translator import Translator
from regardant.training.checkpoints import load_into


@dataclass
class Prepared:
    """All that training needs."""

    config: TranslationConfig
    """With everything chosen but the budget."""
    job: TranslationJob

    def with_speed(self, tokens_per_second: float) -> TranslationConfig:
        """The configuration with its budget chosen too, from the target tokens this machine trains a second."""
        training = choose_minutes(self.config.training, self.job.corpus.target_tokens, tokens_per_second)
        self.config = self.config.model_copy(update={"training": training})
        return self.config


def prepare_training(config: TranslationConfig, run: Path, say: Callable[[str], None]) -> Prepared:
    """Read the corpus into the run folder, choose what is left open, build the model from the seed."""
    corpus = prepare(config, run, say)
    model_config = choose_model(config.model, len(corpus.train))
    training = choose_schedule(config, model_config)
    config = config.model_copy(update={"model": model_config, "training": training})
    torch.manual_seed(config.seed)
    model = build_model(config, corpus.tokenizers)
    if training.start_from is not None:
        load_into(model, Path(training.start_from) / "model.safetensors")
    job = TranslationJob(config, corpus, model)
    if job.batches.too_long:
        say(f"{job.batches.too_long:,} pairs are longer than the model's {model_config.max_length} tokens and left out")
    return Prepared(config, job)


def build_model(config: TranslationConfig, tokenizers: Tokenizers) -> EncoderDecoder:
    """The model a configuration describes, with fresh weights. Raises ConfigError where the vocabularies do not fit."""
    try:
        return EncoderDecoder(config.model, tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    except ValueError as error:
        raise ConfigError(f"model: {error}") from error


def load_translator(config: TranslationConfig, run: Path, device: torch.device) -> Translator:
    """The translator that a run has become. Raises RunError where the run is not whole."""
    for name in ("tokenizer.json", "model.safetensors"):
        if not (run / name).is_file():
            raise RunError(f"{run} has no {name}: train it first, or go on with the command that began it")
    tokenizers = Tokenizers.load(run / "tokenizer.json")
    model = build_model(config, tokenizers)
    load_into(model, run / "model.safetensors")
    return Translator(model, tokenizers, device)
