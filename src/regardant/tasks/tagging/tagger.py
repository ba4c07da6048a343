"""A finished run of tagging: labels of words, scores, and words with their labels for people."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from regardant.config.run_files import EVALUATION
from regardant.data.tagged import TaggedText
from regardant.errors import DataError
from regardant.evaluation.tagging import score_tags
from regardant.files import write_atomically
from regardant.interop.parity import TestTexts
from regardant.modalities.words import LABELS, LabelledWords, WordsCodec, first_tokens
from regardant.models.heads import IGNORED
from regardant.tasks.base import Prediction
from regardant.tasks.comparison import PREDICTIONS
from regardant.tasks.exchange import Exchange, percent_equal
from regardant.tasks.items.data import EncodedItems
from regardant.tasks.items.job import ScoredBatches
from regardant.tasks.items.labels import read_labels
from regardant.tasks.items.trained import TrainedItems, cut_note, tokens_of
from regardant.tasks.tagging.job import TaggedBatches


class Tagger(TrainedItems):
    """A model with its labels."""

    codec: WordsCodec

    @cached_property
    def labels(self) -> list[str]:
        """Labels by number."""
        return read_labels(self.folder)

    def answer(self, item: str, scores: Tensor) -> Prediction:
        first = first_tokens(self.encoded(item))
        shares = scores[: len(first)][torch.from_numpy(first)].softmax(-1)
        words = [self._word(word, row) for word, row in zip(item.split(), shares.tolist(), strict=False)]
        return Prediction(item, " ".join(map(_tagged, words)), {"words": words})

    def units(self, found: Prediction, encoded: NDArray[Any]) -> list[tuple[str, int]]:
        """Return the words with their labels, and the number of tokens of each."""
        return self.codec.named_units([_tagged(one) for one in found.details["words"]], encoded)

    def target_counts(self) -> Tensor:
        """Return how often each label occurs in the validation texts."""
        targets = torch.cat([self.codec.targets([one]) for one in self._splits()["validation"].items], 1)
        return targets[targets != IGNORED].bincount()

    def batches(self, split: EncodedItems) -> TaggedBatches:
        return TaggedBatches(split, self.codec, batch_tokens=self.batch_elements, max_length=self.max_length, seed=0)

    def evaluated(self, name: str, split: EncodedItems) -> dict[str, Any]:
        """Return the scores of a test set. The answer to each word is kept beside them, with the number of its text."""
        answers, labels = self.answers(split), self.labels
        lines = [""] * len(split)
        for planned, (scores, targets) in zip(self.batches(split).plan(0), answers, strict=True):
            for item, row, given in zip(planned.indices.tolist(), scores.softmax(-1), targets, strict=True):
                counted = given != IGNORED
                for share, target in zip(row[counted], given[counted].tolist(), strict=True):
                    best = int(share.argmax())
                    found = {"target": labels[target], "answer": labels[best], "probability": float(share[best])}
                    lines[item] += json.dumps({"item": item, **found}, ensure_ascii=False) + "\n"
        write_atomically(self.folder / EVALUATION / f"{name}{PREDICTIONS}", "".join(lines))
        return self._scored(split, answers)

    def exchanged(self, name: str, split: EncodedItems) -> Exchange:
        items = [self.codec.cut(split.items[number], self.max_length) for number in range(len(split))]
        texts = [" ".join(self.codec.words_of(one)) for one in items]
        expected = [" ".join(self.labels[label] for label in one[first_tokens(one), LABELS].tolist()) for one in items]
        score = percent_equal(expected, by_words=True)
        test = TestTexts(name, texts, texts, "accuracy", score, tokens_of(self.codec))
        return Exchange(test, self._label_lines, self.text_scores)

    def _label_lines(self, texts: Sequence[str]) -> list[str]:
        return [" ".join(word["label"] for word in one.details["words"]) for one in self.predict(texts)]

    def read(self, data: Path) -> EncodedItems:
        texts = [numbered(text, self.labels) for text in self.config.data.items(str(data.resolve()))]
        if not texts:
            raise DataError(f"{data} holds no text: give one with a label for each word")
        return EncodedItems.of(self.codec.encode(texts), [0] * len(texts))

    def summary(self, name: str, scores: dict[str, Any]) -> Sequence[str]:
        """Return the scores of a test set as lines for people."""
        spans = f"span F1 {scores['span_f1']:.2%}, " if "span_f1" in scores else ""
        line = (
            f"{name}: accuracy {scores['accuracy']:.2%}, {spans}loss {scores['loss']:.3f} nats per word, "
            f"{scores['words']:,} words in {scores['items']:,} texts"
        )
        if unread := scores["unread_words"]:
            line += f"; {unread:,} further words are beyond the model's {self.max_length} tokens"
        return [f"{line}{cut_note(scores)}"]

    def _scored(self, split: EncodedItems, answers: ScoredBatches) -> dict[str, Any]:
        scores = score_tags(answers, self.labels)
        words = sum(int(first_tokens(split.items[number]).sum()) for number in range(len(split)))
        return {**scores.as_dict(), "unread_words": words - scores.words}

    def _word(self, word: str, shares: Sequence[float]) -> dict[str, Any]:
        by_label = dict(zip(self.labels, shares, strict=True))
        best = max(by_label, key=by_label.__getitem__)
        return {"word": word, "label": best, "probability": by_label[best], "probabilities": by_label}


def _tagged(word: Mapping[str, Any]) -> str:
    return f"{word['word']}/{word['label']}"


def numbered(text: TaggedText, labels: Sequence[str]) -> LabelledWords:
    """Return a text with the numbers of its labels. Raises DataError for a label that the run does not know."""
    numbers = {label: number for number, label in enumerate(labels)}
    for label, line in zip(text.labels, text.lines, strict=True):
        if label not in numbers:
            raise DataError(
                f"{text.path} line {line:,}: label {label!r} is none of the run's ({', '.join(labels)}): correct it"
            )
    return LabelledWords(text.words, [numbers[label] for label in text.labels])
