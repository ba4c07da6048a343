"""A finished run of matching: the best second items for a first one, scores, inspection."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from regardant.config.run_files import EVALUATION
from regardant.data.item_pairs import PairTableConfig
from regardant.errors import DataError, RunError
from regardant.files import write_atomically
from regardant.layers.observed import OBSERVED
from regardant.modalities import Codec
from regardant.models import DualEncoder
from regardant.models.heads import Match
from regardant.tasks.base import Prediction
from regardant.tasks.comparison import PREDICTIONS
from regardant.tasks.items.data import EncodedItems
from regardant.tasks.items.trained import ReadItem, TrainedItems, cut_note
from regardant.tasks.matching.collection import Collection
from regardant.tasks.matching.job import score_split
from regardant.tasks.matching.pairs import (
    FIRST,
    SECOND,
    PairBatches,
    PairedItems,
    Reader,
    are_kept,
    pair_up,
    read_pairs,
    with_paths,
)

MATCHES = 5
"""Maximum number of second items that a prediction lists."""


class Matcher(TrainedItems):
    """A model with the collection of second items that first items are compared with."""

    model: DualEncoder

    def __init__(
        self, config: Any, folder: Path, codecs: Mapping[str, Codec], model: DualEncoder, device: torch.device
    ) -> None:
        super().__init__(config, folder, codecs[FIRST], model, device)
        self.second = Reader(codecs[SECOND], model.max_length(SECOND))
        self.collection = Collection.load(folder)

    @property
    def candidates(self) -> Tensor:
        """Unit vectors of the collection [C, M]. They are computed once, and anew during an intervention in the encoder
        that reads the collection."""
        if any(module in OBSERVED for module in self.model.tower(SECOND).modules()):
            return self._read_collection()
        return self._kept_candidates

    def item_scores(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        """Return the cosine similarity of each encoded item with each item of the collection, [N, C]."""
        with torch.inference_mode():
            items = self.codec.collate(encoded).to(self.device)
            vectors = self.model.tower(FIRST).scores(input=items).float().cpu()
            return F.normalize(vectors, dim=-1) @ self.candidates.T

    def answer(self, item: str, scores: Tensor) -> Prediction:
        assert isinstance(self.model.head, Match)
        shares = (float(self.model.head.scale.detach()) * scores).softmax(-1)
        best = scores.topk(min(MATCHES, len(scores)))
        matches = [
            {"item": self.collection.items[number], "similarity": similarity, "probability": float(shares[number])}
            for number, similarity in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
        if not self.collection.labels:
            return Prediction(item, matches[0]["item"], {"matches": matches})
        for match, number in zip(matches, best.indices.tolist(), strict=True):
            match["label"] = self.collection.labels[number]
        return Prediction(item, matches[0]["label"], {"label": matches[0]["label"], "matches": matches})

    def shares(self, found: Prediction) -> list[tuple[str, float]]:
        return [(one["item"], one["probability"]) for one in found.details["matches"]]

    def inputs_of(self, found: Prediction) -> dict[str, ReadItem]:
        """Return the item, and the best item of the collection."""
        best = found.details["matches"][0]["item"]
        (whole,) = self.second.codec.encode([self.second.codec.parse(best)])
        encoded = self.second.codec.cut(whole, self.second.max_length)
        partner = ReadItem(self.second.codec, encoded, self.second.codec.units(best, encoded))
        first = self.encoded(found.item)
        return {FIRST: ReadItem(self.codec, first, self.units(found, first)), SECOND: partner}

    def batches(self, split: EncodedItems) -> PairBatches:
        """Return batches of the same size as in training, since the loss depends on the size."""
        return self._batches(split, self._rows)

    def num_cut(self, split: EncodedItems) -> int:
        """Return how many items of pairs, of both kinds, are longer than the model. An item counts in each pair."""
        batches = self.batches(split)
        return batches.too_long + batches.second.too_long

    def evaluated(self, name: str, split: EncodedItems) -> dict[str, Any]:
        """Return the scores of a test set. The label predicted for each distinct first item is kept beside them."""
        found = score_split(self.model, self.batches(split), self.collection, self.second, self.device)
        if found.answers is not None:
            classes = self.collection.classes
            numbers = found.answers.tolist()
            lines = [{"target": classes[target], "answer": classes[answer]} for target, answer in numbers]
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            write_atomically(self.folder / EVALUATION / f"{name}{PREDICTIONS}", text)
        return found.scores

    def read(self, data: Path) -> PairedItems:
        table = self.config.data
        if not isinstance(table, PairTableConfig):
            raise DataError(f"--data {data}: this run's pairs come from {table.kind}: leave --data out")
        modalities = self.config.modalities
        pairs = [with_paths(pair, modalities) for pair in table.items(str(data.resolve()), self.config.files)]
        if not pairs:
            raise DataError(f"{data} holds no pair: give one at least")
        try:
            labels = self.collection.numbers(pair.label for pair in pairs)
        except KeyError as error:
            raise DataError(
                f"{data}: label {error} is none of the run's ({', '.join(self.collection.classes)}): correct it"
            ) from error
        first = self.codec.encode([pair.first for pair in pairs])
        return pair_up(first, self.second.codec.encode([pair.second for pair in pairs]), labels)

    def summary(self, name: str, scores: dict[str, Any]) -> Sequence[str]:
        """Return the scores of a test set as lines for people."""
        lines = [
            f"{name}: {self._retrieval(scores, '')}",
            f"{name}, reversed: {self._retrieval(scores, 'reverse_')}",
            f"{name}: loss {scores['loss']:.3f} nats per pair, {scores['items']:,} pairs of {scores['first_items']:,} "
            f"first and {scores['second_items']:,} second items{cut_note(scores)}",
        ]
        if "zero_shot_accuracy" in scores:
            lines.insert(0, f"{name}: zero-shot accuracy {scores['zero_shot_accuracy']:.2%}")
        return lines

    @cached_property
    def _rows(self) -> int | None:
        """Maximum number of pairs of a training batch. None: the run holds no data, so each split has its own."""
        return self._batches(self._splits()["train"], None).rows if are_kept(self.folder) else None

    def _batches(self, split: EncodedItems, rows: int | None) -> PairBatches:
        assert isinstance(split, PairedItems)
        first, budget = Reader(self.codec, self.max_length), self.config.training.batch_tokens
        return PairBatches(split, first, self.second, batch_tokens=budget, seed=self.config.seed, rows=rows)

    @cached_property
    def _kept_candidates(self) -> Tensor:
        return self._read_collection()

    def _read_collection(self) -> Tensor:
        return F.normalize(self.collection.vectors(self.model, self.second, self.device), dim=-1)

    def _retrieval(self, scores: Mapping[str, Any], prefix: str) -> str:
        one, five, mean = (scores[f"{prefix}{name}"] for name in ("recall_at_1", "recall_at_5", "mean_rank"))
        classes = scores.get(f"{prefix}class_recall_at_1")
        by_class = "" if classes is None else f", recall@1 by class {classes:.2%}"
        return f"recall@1 {one:.2%}, recall@5 {five:.2%}, mean rank {mean:.1f}{by_class}"

    def _splits(self) -> dict[str, EncodedItems]:
        if not are_kept(self.folder):
            raise RunError(f"{self.folder} holds no data: give some with --data")
        return dict(read_pairs(self.folder / "data")[0])
