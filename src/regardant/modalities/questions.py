"""A question with its context as one text: the tokens of the question, a separator, the tokens of the context.

Devlin et al. 2019, "BERT", https://arxiv.org/abs/1810.04805, section 4.2, without segment embeddings: the separator
alone tells the question from its context.

Shape legend: T tokens of a question, a separator and a context, N questions.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from regardant.data.questions import SHOWN, ContextQuestion
from regardant.data.text_files import require_whole_characters
from regardant.data.vocabulary import EOS
from regardant.errors import DataError
from regardant.modalities.text import TextCodec, TextModalityConfig, units_of_spans, word_units

SEPARATOR = EOS
"""The token between a question and its context."""

TOKENS, STARTS, ENDS, ANSWER = 0, 1, 2, 3
"""Columns of an encoded question: token ids, the first character of each token in the context and the one after its
last, and marks of the answer."""

NOWHERE = -1
"""Character position of a token outside of the context."""

FIRST, LAST = 1, 2
"""Marks of the first and the last token of the answer; a single token has their sum."""

EXAMPLE = '{"question": "Who sees the cat?", "context": "The old judge sees the cat."}'


class QuestionsModalityConfig(TextModalityConfig):
    """Questions with contexts as tokens."""

    def fit(self, items: Iterable[Any]) -> "QuestionsCodec":
        texts = dict.fromkeys(text for one in items for text in (one.context, one.question))
        return QuestionsCodec(super().fit(texts).tokenizer)

    def load(self, run: Path) -> "QuestionsCodec":
        return QuestionsCodec(super().load(run).tokenizer)


class QuestionsCodec(TextCodec):
    """Questions to arrays [T, 4] of token ids, characters in the context and marks of the answer."""

    def encode(self, items: Sequence[Any]) -> list[NDArray[Any]]:
        """Return the arrays of `ContextQuestion`s. Raises DataError for an answer without a token."""
        asked = self.tokenizer.encode_batch([one.question for one in items])
        contexts = {text: number for number, text in enumerate(dict.fromkeys(one.context for one in items))}
        found = [_columns(text, *self.tokenizer.locate(text)) for text in contexts]
        encoded = []
        for one, ids in zip(items, asked, strict=True):
            question = np.full((len(ids) + 1, 4), NOWHERE, np.int32)
            question[:, TOKENS] = [*ids, SEPARATOR]
            question[:, ANSWER] = 0
            encoded.append(np.concatenate([question, _marked(found[contexts[one.context]], one)]))
        return encoded

    def parse(self, argument: str) -> Any:
        """Return the question of a JSON object with a question and a context. Raises DataError."""
        try:
            given = json.loads(argument)
            question, context = given["question"], given["context"]
            if question.strip() and context.strip():
                for name, text in (("question", question), ("context", context)):
                    require_whole_characters(f"{argument[:SHOWN]!r}: the {name}", text)
                return ContextQuestion(question, context)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        raise DataError(f"{argument[:SHOWN]!r} is no question with a context: give a JSON object, as {EXAMPLE}")

    def title(self, argument: str) -> str:
        """Return the question."""
        question: str = self.parse(argument).question
        return question

    def argument(self, encoded: NDArray[Any], folder: Path, name: str) -> str | None:
        parts = np.split(encoded, [question_length(encoded)])
        texts = [super(QuestionsCodec, self).argument(part[:, TOKENS], folder, name) for part in parts]
        if None in texts:
            return None
        return json.dumps(dict(zip(("question", "context"), texts, strict=True)), ensure_ascii=False)

    def collate(self, encoded: Sequence[NDArray[Any]]) -> Tensor:
        return super().collate([one[:, TOKENS] for one in encoded])

    def labels(self, encoded: NDArray[Any]) -> list[str]:
        return super().labels(encoded[:, TOKENS])

    def units(self, argument: str, encoded: NDArray[Any]) -> list[tuple[str, int]]:
        """Return the words of the question, the separator, and the words of the context that have been encoded."""
        given, length, labels = self.parse(argument), question_length(encoded), self.labels(encoded)
        question = word_units(self.tokenizer, given.question, labels[: length - 1])
        spans = encoded[length:, [STARTS, ENDS]].tolist()
        return [*question, (labels[length - 1], 1), *units_of_spans(given.context, spans, labels[length:])]


def question_length(encoded: NDArray[Any]) -> int:
    """Return the number of tokens before the context: those of the question, and the separator."""
    return int((encoded[:, STARTS] == NOWHERE).sum())


def of_context(encoded: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask [T] of the tokens that stand for characters of the context other than white space."""
    found: NDArray[np.bool_] = encoded[:, ENDS] > encoded[:, STARTS]
    return found


def _columns(text: str, ids: Sequence[int], places: Sequence[tuple[int, int]]) -> NDArray[np.int32]:
    """Return the columns of the tokens of a context [T, 4]. Their spans exclude the white space around them."""
    rows = []
    for token, (start, end) in zip(ids, places, strict=True):
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip())
        rows.append((token, start, start + len(piece.strip()), 0))
    return np.array(rows, np.int32).reshape(-1, 4)


def _marked(context: NDArray[np.int32], one: ContextQuestion) -> NDArray[np.int32]:
    """Return the tokens of a context with the first answer marked. Raises DataError if no token stands for it."""
    if not one.answers:
        return context
    marked = context.copy()
    end = one.start + len(one.answers[0])
    inside = np.flatnonzero((marked[:, STARTS] < end) & (marked[:, ENDS] > one.start) & of_context(marked))
    if not len(inside):
        raise DataError(f"no token of the context stands for the answer {one.answers[0][:SHOWN]!r}: correct the answer")
    marked[inside[0], ANSWER] += FIRST
    marked[inside[-1], ANSWER] += LAST
    return marked
