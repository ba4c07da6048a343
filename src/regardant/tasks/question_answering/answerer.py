"""A finished run of question answering: answers with their places, scores, inspection."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regardant.config.run_files import EVALUATION
from regardant.data.questions import ContextQuestion, QuestionFilesConfig
from regardant.errors import DataError
from regardant.evaluation.question_answering import exact_match, score_answers, token_f1
from regardant.files import write_atomically
from regardant.modalities.questions import QuestionsCodec
from regardant.tasks.base import Prediction
from regardant.tasks.comparison import PREDICTIONS
from regardant.tasks.inspection import Inspection
from regardant.tasks.items.data import EncodedItems
from regardant.tasks.items.trained import TrainedItems
from regardant.tasks.question_answering.spans import BestSpan, find_answers, texts_of
from regardant.tasks.question_answering.windows import (
    EncodedQuestions,
    QuestionBatches,
    WindowShape,
    read_questions,
)

NO_ANSWER = "[no answer]"
"""Answer in one line of a question without an answer."""

LIKELIEST = 3
"""Number of likeliest starts and ends on a page."""


class QuestionAnswerer(TrainedItems):
    """A model that answers questions by spans of their contexts."""

    codec: QuestionsCodec

    @cached_property
    def shape(self) -> WindowShape:
        """Sizes of the windows that the model reads."""
        return self.config.window_shape(self.max_length)

    @property
    def threshold(self) -> float:
        """Score above which a span is the answer, chosen on validation questions."""
        return float(self.model.head.get_buffer("threshold"))

    def predict(self, items: Sequence[str], **options: Any) -> list[Prediction]:
        """Return the answers to questions, each a JSON object with `question` and `context`. Raises DataError,
        ConfigError for any option."""
        self.refuse(options, "predicts")
        split = self.encoded_questions([self.codec.parse(item) for item in items])
        windows = np.bincount(split.numbers).tolist()
        rows = zip(items, split.questions, self.found(split), windows, strict=True)
        return [self._prediction(*row) for row in rows]

    def found(self, split: EncodedQuestions) -> list[BestSpan]:
        """Return the best span of each question."""
        plan = self.batches(split).plan(0)
        return find_answers(split, plan, self.answers(split), self.shape.max_answer_length)

    def encoded_questions(self, questions: Sequence[ContextQuestion]) -> EncodedQuestions:
        """Return questions as windows. Raises DataError for a question that is too long."""
        return EncodedQuestions.of_questions(self.codec.encode(questions), questions, self.shape)

    def encoded(self, item: str) -> NDArray[Any]:
        """Return the window with the best span."""
        split = self.encoded_questions([self.codec.parse(item)])
        window: NDArray[Any] = split.items[self.found(split)[0].window]
        return window

    def inspect(self, item: str, **options: Any) -> Inspection:
        """Return the inspection of the window with the best span of a question. Its details have the scores of each
        token as start and end, the class token first."""
        found = super().inspect(item, **options)
        with torch.inference_mode():
            scores = self.model.scores(**found.batch)[0].float().cpu()
        labels = found.inputs["input"].labels
        sides = [f"{name}: {_likeliest(labels, scores[:, side])}." for side, name in enumerate(("Starts", "Ends"))]
        rows = zip(labels, scores.tolist(), strict=True)
        tokens = [{"token": label, "start": start, "end": end} for label, (start, end) in rows]
        return replace(
            found,
            note=" ".join([found.note, *sides]),
            details={**found.details, "tokens": tokens},
        )

    def target_counts(self) -> Tensor:
        """Return how often each span occurs as the target of a validation window."""
        batches = self.batches(self._splits()["validation"])
        targets = torch.cat([batches.load(planned).targets for planned in batches.plan(0)])
        return targets.unique(dim=0, return_counts=True)[1]

    def batches(self, split: EncodedItems) -> QuestionBatches:
        budget, length = self.batch_elements, self.max_length
        return QuestionBatches(split, self.codec, batch_tokens=budget, max_length=length, seed=0)

    def evaluated(self, name: str, split: EncodedItems) -> dict[str, Any]:
        """Return the scores of a test set. The answer to each question is kept beside them."""
        assert isinstance(split, EncodedQuestions)
        found, right = self.found(split), [one.answers for one in split.questions]
        given = texts_of(found, split.questions, self.threshold)
        lines = [
            {
                "target": list(answers),
                "answer": answer,
                "right": exact_match(answer, answers),
                "f1": token_f1(answer, answers),
                "score": at.score,
            }
            for at, answer, answers in zip(found, given, right, strict=True)
        ]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        write_atomically(self.folder / EVALUATION / f"{name}{PREDICTIONS}", text)
        return score_answers(given, right).as_dict()

    def read(self, data: Path) -> EncodedQuestions:
        source = self.config.data
        source = source if isinstance(source, QuestionFilesConfig) else QuestionFilesConfig(source="")
        questions = list(source.items(str(data.resolve())))
        if not questions:
            raise DataError(f"{data} holds no question: give one with its context and its answer")
        return self.encoded_questions(questions)

    def summary(self, name: str, scores: dict[str, Any]) -> Sequence[str]:
        """Return the scores of a test set as lines for people."""
        return [
            f"{name}: exact match {scores['exact_match']:.2%}, F1 {scores['f1']:.2%}, F1 of no answer "
            f"{scores['no_answer_f1']:.2%}, {scores['items']:,} questions, {scores['no_answers']:,} of them without an "
            "answer"
        ]

    def _prediction(self, item: str, given: ContextQuestion, found: BestSpan, windows: int) -> Prediction:
        answered = found.score > self.threshold
        text = given.context[found.start : found.end] if answered else ""
        details = {
            "text": text,
            "start": found.start if answered else None,
            "end": found.end if answered else None,
            "score": found.score,
            "threshold": self.threshold,
        }
        longer = f"longer than the model's {self.max_length} tokens, read in {windows} windows"
        return Prediction(item, text or NO_ANSWER, details, [longer] if windows > 1 else [])

    def _splits(self) -> dict[str, EncodedItems]:
        return {
            name: EncodedQuestions.of_questions(split.items, read_questions(self.folder / "data", name), self.shape)
            for name, split in super()._splits().items()
        }


def _likeliest(labels: Sequence[str], scores: Tensor) -> str:
    """Return the likeliest tokens, with their numbers and their probabilities."""
    best = scores.softmax(0).topk(min(LIKELIEST, len(labels)))
    rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return ", ".join(f"{labels[number]} ({number}) {share:.1%}" for number, share in rows)
