"""Classification as a task: an item in, one of several classes out."""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import field_validator
from torch import Tensor

from regardant.config.run_files import EVALUATION
from regardant.data import labelled_sources  # noqa: F401  # a kind is known by being imported
from regardant.data.labelled import LabelledConfig, Sets, train_all_labels
from regardant.errors import DataError
from regardant.evaluation.classification import score_classes
from regardant.files import write_atomically
from regardant.interop.parity import TestTexts
from regardant.modalities.text import TextCodec
from regardant.models.heads import (
    ElementClassConfig,
    ForecastConfig,
    HeadConfig,
    MatchConfig,
    NextTokenConfig,
    SentenceVectorConfig,
    SequenceClassConfig,
    SpanConfig,
)
from regardant.tasks.base import Log, Prediction, Task
from regardant.tasks.comparison import PREDICTIONS
from regardant.tasks.exchange import Exchange, percent_equal
from regardant.tasks.items.config import ItemsConfig
from regardant.tasks.items.data import MARKER, EncodedItems
from regardant.tasks.items.job import ItemsJob, ScoredBatches
from regardant.tasks.items.labels import LABELS, SHOWN, keep_labels, read_labels
from regardant.tasks.items.prepare import (
    PreparedItems,
    build,
    keep_items,
    of_kind,
    readable,
    seeded,
    with_max_length,
)
from regardant.tasks.items.trained import TrainedItems, cut_note, texts_of, tokens_of
from regardant.training.metrics import Metric

SHOWN_CLASSES = 5
"""Number of likeliest classes on a page."""

OTHER_HEADS = (ElementClassConfig, ForecastConfig, MatchConfig, NextTokenConfig, SentenceVectorConfig, SpanConfig)
"""Heads of the package that give an item no class."""


class ClassificationConfig(ItemsConfig):
    """Configuration of a classifier of labelled items."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("accuracy", higher_is_better=True),
        Metric("loss", higher_is_better=False, unit="nats per label"),
        Metric("macro_f1", higher_is_better=True),
    )

    augments: ClassVar[bool] = True

    task: Literal["classification"] = "classification"
    """The name of the task."""

    data: LabelledConfig
    """Items with a label each."""

    head: HeadConfig = SequenceClassConfig()
    """The head that answers: it gives a class to the whole item."""

    @field_validator("head", mode="after")
    @classmethod
    def gives_a_class_to_an_item(cls, head: HeadConfig) -> HeadConfig:
        """Refuse heads of other tasks. Heads of plugins are not checked."""
        if type(head) in OTHER_HEADS:
            raise ValueError(f"a head of kind {head.kind} gives an item no class: set head.kind=sequence_class")
        return head


class Classification(Task):
    """Classification of items by their labels."""

    name = "classification"
    config = ClassificationConfig
    files = (LABELS,)

    def prepare(self, config: ClassificationConfig, run: Path, log: Log) -> PreparedItems:
        sets = {}
        if not (run / "data" / MARKER).is_file():
            config = config.model_copy(update={"data": config.data.chosen(log)})
            read = _read(config, log)
            labels = sorted({label for _, label in read["train"]})
            keep_labels(labels, run, config.training, log)
            numbers = {label: number for number, label in enumerate(labels)}
            sets = {
                name: [(item, _known(numbers, label, f"the {name} set")) for item, label in items]
                for name, items in read.items()
            }
        codec, splits, fingerprints = keep_items(run, config, sets, log)
        config = with_max_length(config, codec, splits["train"], log)
        model = seeded(config, codec, len(read_labels(run)), run)
        job = ItemsJob(config, codec, splits, model, _metrics, unit="label")
        job.batches.log_cut(log)
        return PreparedItems(config, job, fingerprints)

    def open(self, config: ClassificationConfig, run: Path, device: torch.device) -> "Classifier":
        self.require_trained(run)
        labels, codec = read_labels(run), config.input.load(run)
        return Classifier(config, run, codec, build(config, codec, len(labels)), device)


class Classifier(TrainedItems):
    """A model with its labels."""

    @cached_property
    def labels(self) -> list[str]:
        """Classes by number."""
        return read_labels(self.folder)

    def answer(self, item: str, scores: Tensor) -> Prediction:
        shares = dict(zip(self.labels, scores.softmax(-1).tolist(), strict=True))
        best = max(shares, key=shares.__getitem__)
        return Prediction(item, best, {"label": best, "probability": shares[best], "probabilities": shares})

    def target_counts(self) -> Tensor:
        return torch.from_numpy(self._splits()["validation"].targets).bincount()

    def shares(self, found: Prediction) -> list[tuple[str, float]]:
        return sorted(found.details["probabilities"].items(), key=lambda one: -one[1])[:SHOWN_CLASSES]

    def evaluated(self, name: str, split: EncodedItems) -> dict[str, Any]:
        answers = self.answers(split)
        rows = np.concatenate([planned.indices for planned in self.batches(split).plan(0)])
        self.keep_answers(name, split.targets, torch.cat([scores for scores, _ in answers])[rows.argsort()])
        return score_classes(answers).as_dict()

    def keep_answers(self, name: str, targets: NDArray[np.int64], scores: Tensor) -> None:
        """Keep the answer to each item of a test set in the run, from its target and its scores [N, C]."""
        labels, lines = self.labels, []
        for target, share in zip(targets.tolist(), scores.softmax(-1), strict=True):
            best = int(share.argmax())
            found = {"target": labels[target], "answer": labels[best], "probability": float(share[best])}
            lines.append(json.dumps(found, ensure_ascii=False) + "\n")
        write_atomically(self.folder / EVALUATION / f"{name}{PREDICTIONS}", "".join(lines))

    def exchanged(self, name: str, split: EncodedItems) -> Exchange:
        assert isinstance(self.codec, TextCodec)
        texts, labels = texts_of(self.codec, split), self.labels
        expected = [labels[target] for target in split.targets.tolist()]
        test = TestTexts(name, texts, texts, "accuracy", percent_equal(expected), tokens_of(self.codec))
        return Exchange(test, lambda texts: [one.answer for one in self.predict(texts)], self.text_scores)

    def read(self, data: Path) -> EncodedItems:
        items = of_kind(self.config.input, self.config.data.given(data), lambda line: None)
        numbers = {label: number for number, label in enumerate(self.labels)}
        encoded = self.codec.encode([item for item, _ in items])
        return EncodedItems.of(encoded, [_known(numbers, label, str(data)) for _, label in items])

    def summary(self, name: str, scores: dict[str, Any]) -> Sequence[str]:
        """Return the scores of a test set as lines for people."""
        low, high = scores["interval"]
        return [
            f"{name}: accuracy {scores['accuracy']:.2%} (95 % interval {low:.2%} to {high:.2%}), macro F1 "
            f"{scores['macro_f1']:.3f}, loss {scores['loss']:.3f} nats per label, {scores['items']:,} items"
            f"{cut_note(scores)}"
        ]


def _metrics(answers: ScoredBatches) -> dict[str, float]:
    scores = score_classes(answers)
    return {"accuracy": scores.accuracy, "macro_f1": scores.macro_f1}


def _read(config: ClassificationConfig, log: Log) -> Sets:
    """Return the readable items of all splits. A random split has every label of the validation items in training."""
    sets = {
        name: readable(config.input, of_kind(config.input, items, log), log)
        for name, items in config.data.read(config.seed).items()
    }
    return train_all_labels(sets, config.data.group_of) if config.data.validates_on_share() else sets


def _known(numbers: dict[str, int], label: str, place: str) -> int:
    """Return the number of a label. Raises DataError, which names `place`, if no training item has the label."""
    if label not in numbers:
        there = ", ".join(list(numbers)[:SHOWN]) + (f", ..., {len(numbers):,} in all" if len(numbers) > SHOWN else "")
        raise DataError(
            f"{place}: label {label!r} is in no training item (there are: {there}): correct the label, leave its items "
            "out, or train on items with it"
        )
    return numbers[label]
