"""Masked language modelling as a task: a text with blanks in, the words that fill them out.

Devlin et al. 2019, "BERT", https://arxiv.org/abs/1810.04805.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regardant.data.lines import LinesConfig
from regardant.data.masking import Masking
from regardant.data.vocabulary import MASK, SPECIAL_TOKENS
from regardant.errors import DataError, ItemError
from regardant.evaluation.masked_tokens import score_masked_tokens
from regardant.interop.parity import TestTexts
from regardant.interop.settings import file_ids
from regardant.modalities import TextModalityConfig
from regardant.modalities.text import TextCodec
from regardant.models.heads import NextTokenConfig
from regardant.tasks.base import Log, Prediction, Task
from regardant.tasks.exchange import Exchange, percent_equal
from regardant.tasks.items.config import ItemsConfig
from regardant.tasks.items.data import MARKER, EncodedItems
from regardant.tasks.items.prepare import PreparedItems, build, keep_items, seeded
from regardant.tasks.items.trained import TrainedItems, cut_note, tokens_of
from regardant.tasks.masked_language_modelling.job import MaskedBatches, MaskedLanguageModellingJob
from regardant.training.metrics import Metric

BLANK = "[MASK]"
"""The mark of a blank in a text to fill in."""

CANDIDATES = 5
"""Maximum number of tokens that a prediction lists for a blank."""


class MaskedLanguageModellingConfig(ItemsConfig):
    """Configuration of a model that fills in blanks of texts."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("loss", higher_is_better=False, unit="nats per masked token"),
        Metric("perplexity", higher_is_better=False),
        Metric("accuracy", higher_is_better=True),
    )

    task: Literal["masked_language_modelling"] = "masked_language_modelling"
    """The name of the task."""

    data: LinesConfig
    """The texts."""

    input: TextModalityConfig = TextModalityConfig()
    """Tokenizer, which turns text into tokens."""

    masking: Masking = "tokens"
    """Unit of masking: tokens drawn one by one, whole words, or spans of 1 to 10 words (SpanBERT)."""

    head: NextTokenConfig = NextTokenConfig()
    """The head that predicts masked tokens."""


class MaskedLanguageModelling(Task):
    """Masked language modelling of texts."""

    name = "masked_language_modelling"
    config = MaskedLanguageModellingConfig

    def prepare(self, config: MaskedLanguageModellingConfig, run: Path, log: Log) -> PreparedItems:
        sets = {}
        if not (run / "data" / MARKER).is_file():
            sets = {name: [(text, 0) for text in texts] for name, texts in config.data.read(config.seed).items()}
        codec, splits, fingerprints = keep_items(run, config, sets, log)
        assert isinstance(codec, TextCodec)
        model = seeded(config, codec, codec.tokenizer.vocab_size, run)
        job = MaskedLanguageModellingJob(config, codec, splits, model)
        job.batches.log_cut(log)
        return PreparedItems(config, job, fingerprints)

    def open(self, config: MaskedLanguageModellingConfig, run: Path, device: torch.device) -> "MaskedLanguageModel":
        self.require_trained(run)
        codec = config.input.load(run)
        return MaskedLanguageModel(config, run, codec, build(config, codec, codec.tokenizer.vocab_size), device)


class MaskedLanguageModel(TrainedItems):
    """A model that fills in blanks."""

    codec: TextCodec

    def predict(self, items: Sequence[str], **options: Any) -> list[Prediction]:
        """Return each text with its blanks filled in. Raises DataError for a text without a blank, ConfigError for any
        option."""
        self.refuse(options, "predicts")
        for number, item in enumerate(items):
            if BLANK not in item:
                raise ItemError(number, f"has no blank to fill in: write one as in 'a {BLANK} film'")
        return [self._filled(item) for item in items]

    def encoded(self, item: str) -> NDArray[Any]:
        return self.codec.cut(self.codec.encode_with_blanks(item, BLANK), self.max_length)

    def shares(self, found: Prediction) -> list[tuple[str, float]]:
        """Return the candidates of the first blank."""
        return [(one["token"], one["probability"]) for one in found.details["blanks"][0]]

    def evaluated(self, name: str, split: EncodedItems) -> dict[str, Any]:
        batches = self.batches(split)
        return score_masked_tokens(self.model, map(batches.load, batches.plan(0)), self.device).as_dict()

    def target_counts(self) -> Tensor:
        """Return how often each token that may be masked occurs in the validation texts."""
        split = self._splits()["validation"]
        ids = np.concatenate([self._maskable(split, number) for number in range(len(split))])
        return torch.from_numpy(ids.astype(np.int64)).bincount()

    def _maskable(self, split: EncodedItems, number: int) -> NDArray[Any]:
        """Return the tokens of a text that are read, without those with which the tokenizer frames it."""
        before, after = map(len, self.codec.tokenizer.frame)
        ids = self.codec.cut(split.items[number], self.max_length)
        return ids[before : len(ids) - after]

    def batches(self, split: EncodedItems) -> MaskedBatches:
        return MaskedBatches(
            split,
            self.codec,
            masking=self.config.masking,
            batch_tokens=self.batch_elements,
            max_length=self.max_length,
            seed=0,
        )

    def exchanged(self, name: str, split: EncodedItems) -> Exchange:
        """Return the texts with their middle token replaced by a blank, with the spaces of that token around it."""
        tokenizer = self.codec.tokenizer
        texts, expected = [], []
        for number in range(len(split)):
            ids = self._maskable(split, number).tolist()
            middle, whole = len(ids) // 2, tokenizer.decode(ids)
            start, end = tokenizer.spans(ids)[middle]
            # The space before a word is a part of its first token, and `decode` hides that of a token alone.
            space = " " if tokenizer.hides_space and whole[start:end].startswith(" ") else ""
            text = f"{whole[:start]}{space}{BLANK}{whole[end:]}"
            if len(self.codec.encode_with_blanks(text, BLANK)) <= self.max_length:
                texts.append(text)
                expected.append(text.replace(BLANK, tokenizer.decode([ids[middle]])))
        test = TestTexts(name, texts, texts, "accuracy", percent_equal(expected), tokens_of(self.codec))
        return Exchange(test, lambda texts: [one.answer for one in self.predict(texts)], self.text_scores)

    def text_scores(self, texts: Sequence[str], references: Sequence[str]) -> list[NDArray[Any]]:
        """Return the logits at each token of a text, in the order of the ids in the tokenizer's file."""
        rows = file_ids(self.codec.tokenizer)
        known = sorted((theirs, own) for own, theirs in enumerate(rows) if theirs is not None)
        order = [own for _, own in known]
        return [scores[:, order] for scores in super().text_scores(texts, references)]

    def read(self, data: Path) -> EncodedItems:
        texts = list(self.config.data.items(str(data.resolve())))
        return EncodedItems.of(self.codec.encode(texts), [0] * len(texts))

    def summary(self, name: str, scores: dict[str, Any]) -> Sequence[str]:
        return [
            f"{name}: loss {scores['loss']:.4f} nats per masked token, perplexity {scores['perplexity']:.2f}, accuracy "
            f"{scores['accuracy']:.2%}, {scores['tokens']:,} masked tokens{cut_note(scores)}"
        ]

    def _filled(self, item: str) -> Prediction:
        ids = self.codec.encode_with_blanks(item, BLANK)
        if len(ids) > self.max_length:
            raise DataError(f"{len(ids)} tokens are more than the model's {self.max_length}: shorten {item[:40]!r}...")
        scores = self.scores({"input": self.codec.collate([ids])})[0, ids == MASK]
        scores[:, : len(SPECIAL_TOKENS)] = -torch.inf
        best = scores.softmax(-1).topk(min(CANDIDATES, scores.shape[1]))
        blanks = [
            [
                {"token": self.codec.tokenizer.decode([token]), "probability": share}
                for token, share in zip(*row, strict=True)
            ]
            for row in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
        answer = item
        for candidates in blanks:
            answer = answer.replace(BLANK, candidates[0]["token"], 1)
        return Prediction(item, answer, {"blanks": blanks})
