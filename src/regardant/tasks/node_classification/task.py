"""Node classification as a task: one graph with some labelled nodes in, a class for every node out.

Kipf and Welling 2017, https://arxiv.org/abs/1609.02907; Velickovic et al. 2018, https://arxiv.org/abs/1710.10903. The
graph is one item: all nodes are read at once, and the loss is that of the labelled nodes of a split.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regardant.data.graphs import GraphConfig, require_known
from regardant.errors import DataError
from regardant.evaluation.classification import score_classes
from regardant.modalities import GraphModalityConfig
from regardant.modalities.graph import GraphCodec
from regardant.models import EncoderConfig
from regardant.models.encoder_only import EncoderOnlyConfig
from regardant.models.heads import IGNORED, ElementClassConfig
from regardant.positions.none import NoneConfig
from regardant.tasks.base import Example, Log, Prediction, Task
from regardant.tasks.classification.task import Classifier
from regardant.tasks.inspection import Inspection
from regardant.tasks.items.config import ItemsConfig
from regardant.tasks.items.data import MARKER, EncodedItems
from regardant.tasks.items.labels import LABELS, keep_labels, read_labels
from regardant.tasks.items.prepare import PreparedItems, build, keep_items, seeded
from regardant.tasks.items.trained import BATCH_ELEMENTS
from regardant.tasks.measures import SENTENCES
from regardant.tasks.node_classification.job import (
    MOST_SHOWN,
    NodeBatches,
    NodeClassificationJob,
    labelled,
    neighbourhood,
    neighbourhoods,
    node_metrics,
)
from regardant.training.metrics import Metric


class NodeClassificationConfig(ItemsConfig):
    """Configuration of a classifier of the nodes of a graph, some of which are labelled."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("accuracy", higher_is_better=True),
        Metric("loss", higher_is_better=False, unit="nats per label"),
        Metric("macro_f1", higher_is_better=True),
    )

    task: Literal["node_classification"] = "node_classification"
    """The name of the task."""

    data: GraphConfig
    """The graph."""

    input: GraphModalityConfig = GraphModalityConfig()
    """The features of nodes that the model reads."""

    model: EncoderConfig = EncoderOnlyConfig(max_length=BATCH_ELEMENTS, positions=NoneConfig())
    """The model that reads the graph."""

    head: ElementClassConfig = ElementClassConfig()
    """The head that scores the classes of each node."""


class NodeClassification(Task):
    """Classification of the nodes of a graph, some of which are labelled."""

    name = "node_classification"
    config = NodeClassificationConfig
    files = (LABELS,)

    def prepare(self, config: NodeClassificationConfig, run: Path, log: Log) -> PreparedItems:
        sets: dict[str, list[tuple[Any, Any]]] = {}
        if not (run / "data" / MARKER).is_file():
            graph, split, left_out = config.data.read(config.seed)
            labels = sorted(set(split["train"].values()))
            for name, given in split.items():
                targets = np.full(len(graph.ids), IGNORED)
                targets[list(given)] = [labels.index(label) for label in given.values()]
                sets[name] = [(graph, targets)]
            left_out.log(log)
            log(f"nodes: {', '.join(f'{len(given):,} {name}' for name, given in split.items())}")
            keep_labels(labels, run, config.training, log)
        codec, splits, fingerprints = keep_items(run, config, sets, log)
        model = seeded(config, codec, len(read_labels(run)), run)
        job = NodeClassificationJob(config, codec, splits, model, node_metrics, unit="labelled node")
        job.batches.require_cut()
        return PreparedItems(config, job, fingerprints)

    def open(self, config: NodeClassificationConfig, run: Path, device: torch.device) -> "NodeClassifier":
        self.require_trained(run)
        codec = config.input.load(run)
        return NodeClassifier(config, run, codec, build(config, codec, len(read_labels(run))), device)


class NodeClassifier(Classifier):
    """A model with its graph and its labels. An item is the id of a node."""

    codec: GraphCodec

    def predict(self, items: Sequence[str], **options: Any) -> list[Prediction]:
        """Return the class of each node, given by its id. Raises DataError for an unknown id, ConfigError for any
        option."""
        self.refuse(options, "predicts")
        numbers = [self.codec.parse(item) for item in items]
        scores = self.scores({"input": self.codec.collate([self._every_node()])})[0]
        return [self.answer(item, row) for item, row in zip(items, scores[numbers], strict=True)]

    def inspect(self, item: str, **options: Any) -> Inspection:
        """Return the inspection of a node's neighbourhood, with the answer from the whole graph."""
        found = super().inspect(item, **options)
        nodes = len(self.encoded(item))
        cut = " (more are left out)" if nodes < len(self._around(item, MOST_SHOWN + 1)) else ""
        return replace(found, note=f"{found.note} Nodes: {item.strip()} and the {nodes - 1} nearest{cut}.")

    def encoded(self, item: str) -> NDArray[Any]:
        return self._around(item, MOST_SHOWN)

    def _around(self, item: str, most: int) -> NDArray[Any]:
        return neighbourhood(self.codec, self.model, self.codec.parse(item), most)

    def examples(self, count: int, folder: Path) -> list[Example]:
        """Return the first nodes of the validation set."""
        nodes = np.flatnonzero(self._splits()["validation"].targets[0] != IGNORED)[:count]
        return [Example(name) for name in self.codec.labels(nodes)]

    def batches(self, split: EncodedItems) -> NodeBatches:
        return NodeBatches(split, self.codec, batch_tokens=self.batch_elements, max_length=self.max_length, seed=0)

    def target_counts(self) -> Tensor:
        targets = self._splits()["validation"].targets
        return torch.from_numpy(targets[targets != IGNORED]).bincount()

    def evaluated(self, name: str, split: EncodedItems) -> dict[str, Any]:
        ((scores, targets),) = labelled(self.answers(split))
        self.keep_answers(name, targets.numpy(), scores)
        return score_classes([(scores, targets)]).as_dict()

    def looked_at(self, split: EncodedItems) -> EncodedItems:
        """Return the neighbourhoods of the first nodes: the attention among all nodes is too large to keep."""
        return neighbourhoods(self.codec, self.model, split.targets, SENTENCES)

    def read(self, data: Path) -> EncodedItems:
        """Return the whole graph with the labels of the nodes in a table. Raises DataError for a table without rows."""
        labels, targets = self.labels, np.full(len(self.codec.graph.ids), IGNORED)
        given = self.config.data.labels_of(data, self.codec.numbers)
        if not given:
            raise DataError(f"{data} holds no nodes: give a table with a row for each labelled node")
        for number, (line, label) in given.items():
            require_known(data, line, label, set(labels))
            targets[number] = labels.index(label)
        every = self._every_node()
        return EncodedItems([every], np.array([len(every)]), targets[None])

    def _every_node(self) -> NDArray[Any]:
        (every,) = self.codec.encode([self.codec.graph])
        return every
