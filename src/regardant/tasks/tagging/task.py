"""Tagging as a task: a text in, a label for each of its words out."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import torch

from regardant.data.tagged import TaggedConfig
from regardant.errors import ConfigError
from regardant.evaluation.tagging import is_bio, score_tags
from regardant.modalities import TextModalityConfig
from regardant.modalities.words import LabelledWords, WordsModalityConfig
from regardant.models.heads import ElementClassConfig
from regardant.tasks.base import Log, Task
from regardant.tasks.items.config import ItemsConfig
from regardant.tasks.items.data import MARKER
from regardant.tasks.items.job import ScoredBatches
from regardant.tasks.items.labels import LABELS, keep_labels, read_labels
from regardant.tasks.items.prepare import PreparedItems, build, keep_items, seeded
from regardant.tasks.tagging.job import TaggingJob
from regardant.tasks.tagging.tagger import Tagger, numbered
from regardant.training.metrics import Metric


class TaggingConfig(ItemsConfig):
    """Configuration of a tagger of words."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("accuracy", higher_is_better=True),
        Metric("loss", higher_is_better=False, unit="nats per word"),
        Metric("span_f1", higher_is_better=True),
    )

    augments: ClassVar[bool] = True

    task: Literal["tagging"] = "tagging"
    """The name of the task."""

    data: TaggedConfig
    """Texts with a label for each word."""

    input: TextModalityConfig = TextModalityConfig()
    """Tokenizer, which turns words into tokens."""

    head: ElementClassConfig = ElementClassConfig()
    """The head that labels words."""

    @property
    def modality(self) -> WordsModalityConfig:
        """The modality of `input`, with words marked."""
        return WordsModalityConfig(**dict(self.input))


class Tagging(Task):
    """Tagging of the words of a text."""

    name = "tagging"
    config = TaggingConfig
    files = (LABELS,)

    def prepare(self, config: TaggingConfig, run: Path, log: Log) -> PreparedItems:
        sets: dict[str, list[tuple[LabelledWords, int]]] = {}
        if not (run / "data" / MARKER).is_file():
            read = config.data.read(config.seed)
            labels = sorted({label for texts in read.values() for text in texts for label in text.labels})
            sets = {name: [(numbered(text, labels), 0) for text in texts] for name, texts in read.items()}
            run.mkdir(parents=True, exist_ok=True)
            keep_labels(labels, run, config.training, log)
            if never := sorted(set(labels) - {label for text in read["train"] for label in text.labels}):
                log(f"labels without a training word: {', '.join(never)}")
        labels = read_labels(run)
        if config.metric.name == "span_f1" and not is_bio(labels):
            raise ConfigError("training.best_by: given 'span_f1', but the labels are not BIO: set accuracy or loss")
        codec, splits, fingerprints = keep_items(run, config, sets, log)
        model = seeded(config, codec, len(labels), run)
        job = TaggingJob(config, codec, splits, model, partial(_metrics, labels), unit="word")
        job.batches.log_cut(log)
        return PreparedItems(config, job, fingerprints)

    def open(self, config: TaggingConfig, run: Path, device: torch.device) -> Tagger:
        self.require_trained(run)
        codec, labels = config.modality.load(run), read_labels(run)
        return Tagger(config, run, codec, build(config, codec, len(labels)), device)


def _metrics(labels: Sequence[str], answers: ScoredBatches) -> dict[str, float]:
    scores = score_tags(answers, labels)
    return {"accuracy": scores.accuracy} | ({} if scores.span_f1 is None else {"span_f1": scores.span_f1})
