"""Translation as a task."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from regardant.tasks.base import Log, Prepared, Report, Task
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.evaluate.comparison import compare_runs
from regardant.tasks.translation.evaluate.comparison_page import ComparisonReport
from regardant.tasks.translation.learn.prepare import prepare_training
from regardant.tasks.translation.trained import TrainedTranslator


class Translation(Task):
    """From sentence pairs to a translator."""

    name = "translation"
    config = TranslationConfig
    files = ("tokenizer.json",)

    def prepare(self, config: TranslationConfig, run: Path, log: Log) -> Prepared:
        return prepare_training(config, run, log)

    def open(self, config: TranslationConfig, run: Path, device: torch.device) -> TrainedTranslator:
        self.require_trained(run)
        return TrainedTranslator(config, run, device)

    def compare(self, runs: Mapping[Path, tuple[Any, Mapping[str, Any]]]) -> Report:
        (first, _), *_ = runs.values()
        plans = {folder: plan for folder, (_, plan) in runs.items()}
        return ComparisonReport(compare_runs(plans, first.evaluation))
