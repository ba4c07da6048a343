"""Job of node classification: the whole graph once per epoch, with the labels of the nodes of a split.

Shape legend: N lists of nodes, T nodes of a list, C classes, L labelled nodes.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regardant.evaluation.classification import score_classes
from regardant.modalities import Codec
from regardant.modalities.graph import GraphCodec
from regardant.models import Model
from regardant.models.heads import IGNORED
from regardant.tasks.items.data import EncodedItems, ItemBatch, ItemBatches, Planned
from regardant.tasks.items.job import ItemsJob, ScoredBatches
from regardant.tasks.observation import PROBED, entropy_of_heads

MOST_SHOWN = 60
"""Maximum number of nodes of a neighbourhood that is inspected, whose attention is drawn node by node."""


class NodeBatches(ItemBatches):
    """Batches of lists of nodes. Targets [T] of a list are classes of labelled nodes, IGNORED for any other."""

    @property
    def targets_per_epoch(self) -> int:
        return int((self.split.targets != IGNORED).sum())

    def load(self, planned: Planned) -> ItemBatch:
        batch = super().load(planned)
        targets = batch.targets[:, : batch.inputs["input"].shape[1]]
        return ItemBatch(batch.inputs, targets, int((targets != IGNORED).sum()))


class NodeClassificationJob(ItemsJob):
    """Job that trains on the whole graph at once, and validates on it with the labels of other nodes."""

    def batches_of(self, split: EncodedItems, codec: Codec, *, batch_tokens: int, max_length: int) -> NodeBatches:
        return NodeBatches(split, codec, batch_tokens=batch_tokens, max_length=max_length, seed=self.seed)

    def observe(self, model: nn.Module, device: torch.device) -> dict[str, Any]:
        """Return the entropy of every head over the neighbourhoods of a few validation nodes: all pairs of nodes would
        take longer than the update."""
        assert isinstance(model, Model)
        codec, split = self.validation.codec, self.validation.split
        assert isinstance(codec, GraphCodec)
        some = neighbourhoods(codec, model, split.targets, PROBED)
        entropy = entropy_of_heads(model, {"input": codec.collate(some.items).to(device)})
        return {"entropy": entropy} if entropy else {}


def neighbourhood(codec: GraphCodec, model: Model, node: int, most: int) -> NDArray[np.int32]:
    """Return a node and those that its answer depends on, nearest first: within one edge per layer, at most `most`."""
    return codec.around(node, getattr(model.config, "num_layers", 0), most)


def neighbourhoods(codec: GraphCodec, model: Model, targets: NDArray[np.int64], most: int) -> EncodedItems:
    """Return the neighbourhoods of the first labelled nodes of a graph, given its targets [1, V].

    The class of the first node is the only target of a list. Targets are [N, T] of the longest list.
    """
    nodes = np.flatnonzero(targets[0] != IGNORED)[:most]
    items = [neighbourhood(codec, model, node, MOST_SHOWN) for node in nodes.tolist()]
    rows = np.array([len(one) for one in items], dtype=np.int64)
    found = np.full((len(items), rows.max()), IGNORED)
    found[:, 0] = targets[0, nodes]
    return EncodedItems(items, rows, found)


def labelled(answers: ScoredBatches) -> list[tuple[Tensor, Tensor]]:
    """Return scores [L, C] and classes [L] of labelled nodes, from those of whole lists."""
    return [(scores[targets != IGNORED], targets[targets != IGNORED]) for scores, targets in answers]


def node_metrics(answers: ScoredBatches) -> dict[str, float]:
    """Return the metrics of a validation beside the loss."""
    scores = score_classes(labelled(answers))
    return {"accuracy": scores.accuracy, "macro_f1": scores.macro_f1}
