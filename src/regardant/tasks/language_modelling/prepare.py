"""Preparation of a language model's training: the job of a recipe, and the settings that a recipe leaves open."""

import math
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from regardant.config.run_files import TOKENIZER
from regardant.data.streamed_text import StreamedTextConfig
from regardant.data.text import MARKER, EncodedText, cut
from regardant.data.tokenizers import Tokenizer, Tokenizers
from regardant.errors import ConfigError
from regardant.models import CausalConfig, CausalModel, next_token, tokens
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.recurrent import RecurrentLanguageModelConfig
from regardant.tasks.base import Log
from regardant.tasks.language_modelling.config import LanguageModellingConfig, TextTrainingConfig
from regardant.tasks.language_modelling.job import LanguageModellingJob, StreamJob
from regardant.tasks.language_modelling.streaming import StreamedTextJob
from regardant.tasks.take_over import run_of_vocabulary, with_first_weights
from regardant.training.config import FirstRun

MOST_CHARACTERS, MOST_PIECES = 2**16, 2000
"""Maximum vocabulary sizes if the recipe sets none: of characters, where rarer ones are unknown, and of pieces."""

FIRST_RUN = FirstRun(epochs=10, least_updates=2000, least_minutes=1.0, most_minutes=50.0)


@dataclass
class PreparedText:
    """Resolved recipe of a language model. Implements `tasks.base.Prepared`."""

    config: LanguageModellingConfig
    """Configuration with all settings resolved but the budget."""
    job: LanguageModellingJob

    @property
    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of the text, by split."""
        data = self.config.data
        shards = data.fingerprints() if isinstance(data, StreamedTextConfig) else {}
        return self.job.text.fingerprints | shards

    def with_speed(self, tokens_per_second: float, log: Log) -> LanguageModellingConfig:
        """Resolve the budget from the measured training speed."""
        training = self.config.training.with_minutes(FIRST_RUN, self.job.targets_per_epoch, tokens_per_second)
        training = training.replaced(validate_every=self.job.validate_every)
        log(f"validation every {self.job.validate_every:,} updates")
        self.config = self.config.model_copy(update={"training": training})
        return self.config


def prepare_training(config: LanguageModellingConfig, run: Path, log: Log) -> PreparedText:
    """Read the text into the run folder, resolve open settings, and build the model from the seed."""
    if not (run / "data" / MARKER).is_file():
        _tokenise(config, run, log)
    text, tokenizer = EncodedText.load(run / "data"), Tokenizers.load(run / TOKENIZER).target
    training = choose_schedule(config.training, config.model)
    config = config.model_copy(update={"training": training})
    model = with_first_weights(lambda: build_model(config, tokenizer), config, run)
    if isinstance(config.data, StreamedTextConfig):
        return PreparedText(config, StreamedTextJob(config, text, model, tokenizer))
    kind = StreamJob if training.carry_state else LanguageModellingJob
    return PreparedText(config, kind(config, text, model, tokenizer))


def build_model(config: LanguageModellingConfig, tokenizer: Tokenizer) -> CausalModel:
    """Return the model of a recipe with fresh weights. Raises ConfigError if its parts do not fit."""
    try:
        size, training = tokenizer.vocab_size, config.training
        head = next_token(size, training.label_smoothing, training.z_loss, config.head)
        return config.model.build(tokens(size), head)
    except ValueError as error:
        raise ConfigError(f"model: {error}") from error


def choose_schedule(training: TextTrainingConfig, model: CausalConfig) -> TextTrainingConfig:
    """Fill in the learning rate that suits the model's width, if the recipe leaves the schedule open."""
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


def _tokenise(config: LanguageModellingConfig, run: Path, log: Log) -> None:
    sizes = config.data.sizes()
    if (earlier := run_of_vocabulary(config.training)) is not None:
        log(f"vocabulary taken over from {earlier}")
        tokenizer = Tokenizers.load(earlier / TOKENIZER).target
    else:  # from the training text alone, which comes first
        train = (piece for _, piece in takewhile(lambda part: part[0] == "train", cut(config.data.pieces(), sizes)))
        most = MOST_PIECES if config.tokenizer.kind == "code" else MOST_CHARACTERS
        tokenizer = Tokenizer.train(config.tokenizer, train, most)
    run.mkdir(parents=True, exist_ok=True)
    Tokenizers(tokenizer, tokenizer).save(run / TOKENIZER)
    text = EncodedText.build(config.data, sizes, tokenizer, run / "data")
    character_counts = ", ".join(
        f"{size:,} {'training' if name == 'train' else name}" for name, size in text.characters.items()
    )
    log(f"{sum(sizes.values()):,} characters ({character_counts}), vocabulary of {tokenizer.vocab_size:,}")
