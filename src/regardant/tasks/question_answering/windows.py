"""Windows of questions: the whole question with a part of its context, so that a context may be longer than the model.

Shape legend: N windows, T tokens of a window, B windows of a batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from regardant.data.questions import ContextQuestion
from regardant.errors import DataError, RunError
from regardant.files import write_atomically
from regardant.modalities.questions import ANSWER, FIRST, LAST, question_length
from regardant.tasks.items.data import EncodedItems, ItemBatch, ItemBatches, Planned


@dataclass(frozen=True)
class WindowShape:
    """The sizes of windows, in tokens."""

    max_length: int
    """Tokens of a window."""
    max_answer_length: int
    stride: int | None
    """Tokens between the starts of two windows in the context. None: half of those that fit beside the question."""

    def starts(self, question: int, context: int) -> list[int]:
        """Return the first context token of each window, given the number of tokens before the context and in it.

        Every answer of `max_answer_length` tokens or fewer is whole in a window. Raises DataError for a question that
        leaves no room for one.
        """
        room = self.max_length - question
        if context <= room:
            return [0]
        if room < self.max_answer_length:
            raise DataError(
                f"a question of {question - 1} tokens leaves {max(room, 0)} of the model's {self.max_length} tokens "
                f"for a longer context, and answers may have {self.max_answer_length}: shorten the question, lower "
                "answering.max_answer_length or raise model.max_length"
            )
        step = min(self.stride or max(1, room // 2), room - self.max_answer_length + 1)
        return [*range(0, context - room, step), context - room]


class ContextWindows(Sequence[NDArray[Any]]):
    """Windows of encoded questions [T, 4], those of the first question first."""

    def __init__(self, items: Sequence[NDArray[Any]], shape: WindowShape) -> None:
        self.items, self.shape = items, shape
        sizes = [(question_length(one), len(one)) for one in items]
        self.places = [
            (number, question, question + start)
            for number, (question, tokens) in enumerate(sizes)
            for start in shape.starts(question, tokens - question)
        ]
        """(number of the question, tokens before the context, index of its first context token) of each window."""
        self.rows = np.array(
            [min(shape.max_length, question + sizes[number][1] - start) for number, question, start in self.places],
            dtype=np.int64,
        )

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Any) -> Any:
        number, question, start = self.places[index]
        item = self.items[number]
        if start == question:
            return item[: self.shape.max_length]
        return np.concatenate([item[:question], item[start : start + self.shape.max_length - question]])


@dataclass(frozen=True)
class EncodedQuestions(EncodedItems):
    """One split: a row is a window."""

    questions: Sequence[ContextQuestion]
    """The questions as they were given."""
    numbers: NDArray[np.int64]
    """[N] number of the question of each window."""

    @classmethod
    def of_questions(
        cls, encoded: Sequence[NDArray[Any]], questions: Sequence[ContextQuestion], shape: WindowShape
    ) -> Self:
        """Return the windows of questions. Raises DataError for a question that is too long."""
        windows = ContextWindows(encoded, shape)
        numbers = np.array([number for number, _, _ in windows.places], dtype=np.int64)
        return cls(windows, windows.rows, np.zeros(len(windows), dtype=np.int64), questions, numbers)

    def first(self, count: int) -> Self:
        """Return the first `count` windows."""
        windows = EncodedItems(self.items, self.rows, self.targets).first(count)
        return replace(self, **vars(windows), numbers=self.numbers[:count])


class QuestionBatch(ItemBatch):
    """Windows, and the span of the answer in each [B, 2], which is one target."""

    def part(self, number: int, parts: int) -> Self:
        share = super().part(number, parts)
        return replace(share, count=len(share.targets))


class QuestionBatches(ItemBatches):
    """Batches of windows."""

    split: EncodedQuestions

    def load(self, planned: Planned) -> QuestionBatch:
        windows = self.arrays(planned)
        targets = torch.tensor([span_of(one) for one in windows])
        return QuestionBatch({"input": self.codec.collate(windows)}, targets, len(targets))


def span_of(window: NDArray[Any]) -> tuple[int, int]:
    """Return the first and the last token of the answer, counted from the class token before the window.

    (0, 0), the span of the class token, if the window does not have the whole answer.
    """
    first, last = (np.flatnonzero(window[:, ANSWER] & mark) for mark in (FIRST, LAST))
    return (int(first[0]) + 1, int(last[0]) + 1) if len(first) and len(last) else (0, 0)


def keep_questions(folder: Path, sets: dict[str, list[ContextQuestion]]) -> None:
    """Keep the questions of all splits in a folder, as they were given."""
    for name, questions in sets.items():
        write_atomically(_file(folder, name), "".join(f"{one.to_json()}\n" for one in questions))


def read_questions(folder: Path, name: str) -> list[ContextQuestion]:
    """Return the questions of a split that `keep_questions` kept. Raises RunError for a damaged file."""
    try:
        lines = _file(folder, name).read_text(encoding="utf-8").split("\n")
        return [ContextQuestion.from_json(line) for line in lines if line]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise RunError(f"{_file(folder, name)} is damaged ({error}): train into another folder") from error


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.questions.jsonl"
