"""Job of matching: batches of pairs, a loss that compares them, and a validation by retrieval.

Shape legend: U distinct first items.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from regardant.evaluation.matching import classify, score_matches
from regardant.modalities import Codec
from regardant.models import DualEncoder
from regardant.tasks.items.data import EncodedItems
from regardant.tasks.items.job import ItemsJob
from regardant.tasks.matching.collection import Collection
from regardant.tasks.matching.pairs import FIRST, SECOND, UNLABELLED, PairBatches, PairedItems, Reader


class MatchingJob(ItemsJob):
    """Job that trains on pairs."""

    validation_factor = 1  # the loss of a pair depends on how many others are in its batch
    validation: PairBatches

    def __init__(
        self,
        config: Any,
        codecs: Mapping[str, Codec],
        splits: Mapping[str, PairedItems],
        model: DualEncoder,
        collection: Collection,
    ) -> None:
        self.second = Reader(codecs[SECOND], model.max_length(SECOND))
        self.collection = collection
        first, budget = Reader(codecs[FIRST], model.max_length(FIRST)), config.training.batch_tokens
        self.rows = PairBatches(splits["train"], first, self.second, batch_tokens=budget, seed=config.seed).rows
        super().__init__(config, codecs[FIRST], dict(splits), model, unit="pair")

    def batches_of(self, split: EncodedItems, codec: Codec, *, batch_tokens: int, max_length: int) -> PairBatches:
        assert isinstance(split, PairedItems)
        first = Reader(codec, max_length)
        return PairBatches(split, first, self.second, batch_tokens=batch_tokens, seed=self.seed, rows=self.rows)

    def validate(self, model: nn.Module, device: torch.device) -> dict[str, float]:
        """Return the mean loss of a pair, and the metrics of retrieval among all validation pairs."""
        assert isinstance(model, DualEncoder)
        scores = score_split(model, self.validation, self.collection, self.second, device).scores
        return {metric.name: scores[metric.name] for metric in self.metrics if metric.name in scores}


class ScoredPairs(NamedTuple):
    """Scores of a split."""

    scores: dict[str, float]
    answers: NDArray[np.int64] | None
    """[U, 2] numbers of the label and of the zero-shot label of each distinct first item. None: the pairs or the
    collection have no labels."""


def score_split(
    model: DualEncoder, batches: PairBatches, collection: Collection, second: Reader, device: torch.device
) -> ScoredPairs:
    """Score a split: the mean loss of a pair, retrieval among all of its items, and zero-shot classification."""
    split, total = batches.split, 0.0
    vectors = torch.zeros(len(split), 2, model.config.size)
    with torch.inference_mode():
        for planned in batches.plan(0):
            batch = batches.load(planned).to(device)
            read = model.vectors(**batch.inputs)
            total += float(model.head.loss(read, batch.targets).plain)
            vectors[planned.indices] = read.values.float().cpu()
    labels = np.asarray(split.labels)
    scores = {**score_matches(vectors, split.numbers, labels).as_dict(), "loss": total / len(split)}
    if not collection.labels or (labels == UNLABELLED).any():
        return ScoredPairs(scores, None)
    prompts = np.array(collection.numbers(collection.labels))
    # An item with several partners is in several pairs: it has one answer.
    first = np.unique(split.numbers[:, 0], return_index=True)[1]
    found = prompts[classify(vectors[torch.from_numpy(first), 0], collection.vectors(model, second, device))]
    answers = np.stack([labels[first], found], 1)
    return ScoredPairs({**scores, "zero_shot_accuracy": float(np.mean(found == labels[first]))}, answers)
