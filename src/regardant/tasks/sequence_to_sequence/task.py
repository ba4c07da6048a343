"""Sequence to sequence as a task: an item of any kind in, a text out."""

from pathlib import Path

import torch

from regardant.config.run_files import WEIGHTS
from regardant.errors import ConfigError
from regardant.tasks.base import Log, Prepared, Task
from regardant.tasks.sequence_to_sequence.config import SequenceToSequenceTaskConfig
from regardant.tasks.sequence_to_sequence.generator import TextGenerator
from regardant.tasks.sequence_to_sequence.items import (
    TARGET_TOKENIZER,
    load_target_tokenizer,
    read_items,
    with_chosen_data,
)
from regardant.tasks.sequence_to_sequence.prepare import build_model, prepare
from regardant.tasks.sequence_to_sequence.trained import TrainedItemGenerator
from regardant.training.checkpoints import load_into


class SequenceToSequence(Task):
    """Sequence to sequence from items of any kind to texts."""

    name = "sequence_to_sequence"
    config = SequenceToSequenceTaskConfig
    files = (TARGET_TOKENIZER,)

    def prepare(self, config: SequenceToSequenceTaskConfig, run: Path, log: Log) -> Prepared:
        config = with_chosen_data(config, run, log)
        return prepare(choose_tying(config), read_items(config, run, log), run, log)

    def open(self, config: SequenceToSequenceTaskConfig, run: Path, device: torch.device) -> TrainedItemGenerator:
        self.require_trained(run)
        codec, tokenizer = config.input.load(run), load_target_tokenizer(run)
        model = build_model(config, codec, tokenizer.vocab_size)
        load_into(model, run / WEIGHTS)
        return TrainedItemGenerator(config, run, TextGenerator(model, codec, tokenizer, device))


def choose_tying(config: SequenceToSequenceTaskConfig) -> SequenceToSequenceTaskConfig:
    """Set `model.tie_embeddings` to `target` if the recipe leaves it open: sources have no vocabulary, or one of their
    own. Raises ConfigError for `all`."""
    if not config.model.joint:
        return config
    if "tie_embeddings" in config.model.model_fields_set:
        raise ConfigError(
            "model.tie_embeddings: given 'all', which needs one vocabulary of sources and targets; "
            "sequence_to_sequence learns one of its targets alone: set model.tie_embeddings=target"
        )
    given = config.model.model_dump(by_alias=True, exclude_unset=True)
    model = type(config.model).model_validate({**given, "tie_embeddings": "target"})
    return config.model_copy(update={"model": model})
