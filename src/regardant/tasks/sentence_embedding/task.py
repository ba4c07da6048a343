"""Sentence embedding as a task: a text in, a vector out. Its models are imported; no run of it is trained.

Reimers and Gurevych 2019, "Sentence-BERT", https://arxiv.org/abs/1908.10084.

Shape legend: N texts, M d_model.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from regardant.data.lines import LinesConfig
from regardant.errors import ConfigError, DataError, RunError
from regardant.interop.parity import TestTexts
from regardant.modalities import TextModalityConfig
from regardant.modalities.text import TextCodec
from regardant.models.heads import SentenceVectorConfig
from regardant.tasks.base import Log, Prediction, Task
from regardant.tasks.exchange import Exchange
from regardant.tasks.items.config import ItemsConfig
from regardant.tasks.items.data import EncodedItems
from regardant.tasks.items.prepare import PreparedItems, build
from regardant.tasks.items.trained import TrainedItems, texts_of, tokens_of
from regardant.tasks.measures import Measures
from regardant.training.metrics import Metric


class SentenceEmbeddingConfig(ItemsConfig):
    """Configuration of a model that gives a text a vector."""

    verbs: ClassVar[tuple[str, ...]] = ("encode",)

    metrics: ClassVar[tuple[Metric, ...]] = (Metric("loss", higher_is_better=False),)

    task: Literal["sentence_embedding"] = "sentence_embedding"
    """The name of the task."""

    data: LinesConfig
    """Texts. An imported model has none."""

    input: TextModalityConfig = TextModalityConfig()
    """Tokenizer, which turns text into tokens."""

    head: SentenceVectorConfig = SentenceVectorConfig()
    """The head that pools the vectors of all tokens into one."""


class SentenceEmbedding(Task):
    """Vectors of texts."""

    name = "sentence_embedding"
    config = SentenceEmbeddingConfig

    def prepare(self, config: SentenceEmbeddingConfig, run: Path, log: Log) -> PreparedItems:
        """Raise ConfigError: runs of this task are imported."""
        raise ConfigError(
            "a run of sentence_embedding is imported and not trained: train a classifier from it with "
            "training.from=RUN and training.parts=[input, encoder]"
        )

    def open(self, config: SentenceEmbeddingConfig, run: Path, device: torch.device) -> "SentenceEncoder":
        self.require_trained(run)
        codec = config.input.load(run)
        return SentenceEncoder(config, run, codec, build(config, codec, 0), device)


class Neighbour(NamedTuple):
    """A text that a search found."""

    number: int
    """Index of the text, from 0."""
    text: str
    similarity: float
    """Cosine similarity of the text's vector and the query's."""


class SentenceEncoder(TrainedItems):
    """A model that gives texts vectors."""

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Return the vectors [N, M] of texts, each of length 1, in float32 on the CPU. Raises DataError for a blank
        text."""
        if not texts:
            raise DataError("there are no texts to encode: give one or more")
        encoded = [self.codec.cut(one, self.max_length) for one in self.codec.read(texts)]
        rows: list[Tensor] = [row for some in self._alike(encoded) for row in self.item_scores(some)]
        return torch.stack(rows)

    def search(self, query: str, texts: Sequence[str], count: int) -> list[Neighbour]:
        """Return the texts that are most similar to a query, the most similar first."""
        return self.nearest(query, texts, self.encode(texts), count)

    def nearest(self, query: str, texts: Sequence[str], vectors: Tensor, count: int) -> list[Neighbour]:
        """Return the texts, whose vectors [N, M] are given, that are most similar to a query, the most similar
        first."""
        similarities = vectors @ self.encode([query])[0]
        best = similarities.topk(min(count, len(texts)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [Neighbour(number, texts[number], similarity) for number, similarity in pairs]

    def answer(self, item: str, scores: Tensor) -> Prediction:
        """Return the vector as an answer, with six significant digits per number."""
        return Prediction(item, " ".join(f"{number:.6g}" for number in scores.tolist()), {"vector": scores.tolist()})

    def exchanged(self, name: str, split: EncodedItems) -> Exchange:
        assert isinstance(self.codec, TextCodec)
        texts = texts_of(self.codec, split)
        test = TestTexts(name, texts, texts, "", None, tokens_of(self.codec), are_words=False)
        return Exchange(test, lambda texts: [one.answer for one in self.predict(texts)], self.text_scores)

    def read(self, data: Path) -> EncodedItems:
        texts = list(self.config.data.items(str(data.resolve())))
        return EncodedItems.of(self.codec.encode(texts), [0] * len(texts))

    def evaluate(self, data: Sequence[Path] = (), **options: Any) -> dict[str, dict[str, Any]]:
        """Raise RunError: vectors have no scores."""
        raise RunError(
            f"{self.folder} turns texts into vectors, which have no scores: use encode, or train a classifier"
        )

    def measure(self, data: Sequence[Path] = (), treebank: Path | None = None) -> Measures:
        """Raise RunError: measures of heads need a loss."""
        raise RunError(f"{self.folder} turns texts into vectors, without a loss to measure heads by: use inspect")
