"""Language modelling as a task."""

from pathlib import Path

import torch

from regardant.config.run_files import TOKENIZER
from regardant.tasks.base import Log, Prepared, Task
from regardant.tasks.language_modelling.config import LanguageModellingConfig
from regardant.tasks.language_modelling.language_model import LanguageModel
from regardant.tasks.language_modelling.prepare import prepare_training


class LanguageModelling(Task):
    """Language modelling of a text, which the model continues."""

    name = "language_modelling"
    config = LanguageModellingConfig
    files = (TOKENIZER,)

    def prepare(self, config: LanguageModellingConfig, run: Path, log: Log) -> Prepared:
        return prepare_training(config, run, log)

    def open(self, config: LanguageModellingConfig, run: Path, device: torch.device) -> LanguageModel:
        self.require_trained(run)
        return LanguageModel(config, run, device)
