"""Translation as a task: the text-to-text recipe of sequence to sequence."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from regardant.config.differences import differences
from regardant.config.run_files import TOKENIZER, WEIGHTS
from regardant.data.streamed_pairs import StreamedPairsConfig
from regardant.data.tokenizers import Tokenizers
from regardant.modalities.text import SentenceCodec
from regardant.tasks.base import Log, Prepared, Report, Task
from regardant.tasks.sequence_to_sequence.job import SequenceToSequenceJob
from regardant.tasks.sequence_to_sequence.prepare import build_model, prepare
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.evaluate.comparison import compare_runs
from regardant.tasks.translation.evaluate.comparison_page import ComparisonReport
from regardant.tasks.translation.learn.corpus import read_corpus
from regardant.tasks.translation.learn.guidance import GuidedJob
from regardant.tasks.translation.learn.streaming import StreamedTranslationJob
from regardant.tasks.translation.trained import TrainedTranslator
from regardant.tasks.translation.use.translator import Translator
from regardant.training.checkpoints import load_into


class Translation(Task):
    """Sequence to sequence from text to text: from sentence pairs to a translator."""

    name = "translation"
    config = TranslationConfig
    files = (TOKENIZER,)

    def prepare(self, config: TranslationConfig, run: Path, log: Log) -> Prepared:
        corpus = read_corpus(config, run, log)
        if isinstance(config.data, StreamedPairsConfig):
            log(f"streamed from {len(config.data.found()):,} shards, of which these pairs are the beginning:")
            return prepare(config, corpus, run, log, StreamedTranslationJob)
        return prepare(config, corpus, run, log, SequenceToSequenceJob if corpus.links is None else GuidedJob)

    def open(self, config: TranslationConfig, run: Path, device: torch.device) -> TrainedTranslator:
        self.require_trained(run)
        return TrainedTranslator(config, run, load_translator(config, run, device))

    def compare(self, runs: Mapping[Path, tuple[Any, Mapping[str, Any]]]) -> Report:
        (first, _), *_ = runs.values()
        plans = {folder: plan for folder, (_, plan) in runs.items()}
        before = first.model_dump(mode="json")
        settings = [differences(before, config.model_dump(mode="json")) for config, _ in list(runs.values())[1:]]
        return ComparisonReport(compare_runs(plans, first.evaluation), settings)


def load_translator(config: TranslationConfig, run: Path, device: torch.device) -> Translator:
    """Return the translator of a run. Raises RunError if the run is incomplete."""
    tokenizers = Tokenizers.load(run / TOKENIZER)
    model = build_model(config, SentenceCodec(tokenizers.source), tokenizers.target.vocab_size)
    load_into(model, run / WEIGHTS)
    return Translator(model, tokenizers, device)
