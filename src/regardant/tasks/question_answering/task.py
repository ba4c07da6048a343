"""Question answering as a task: a question with its context in, a span of the context or no answer out.

Devlin et al. 2019, "BERT", https://arxiv.org/abs/1810.04805, sections 4.2 and 4.3.
"""

from pathlib import Path
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator

from regardant.config import Config
from regardant.data import stories  # noqa: F401  # a kind is known by being imported
from regardant.data.questions import ContextQuestion, QuestionsConfig
from regardant.modalities import TextModalityConfig
from regardant.modalities.questions import QuestionsModalityConfig
from regardant.models.heads import SpanConfig
from regardant.tasks.base import Log, Task
from regardant.tasks.items.config import ItemsConfig
from regardant.tasks.items.data import MARKER
from regardant.tasks.items.prepare import PreparedItems, build, keep_items, seeded
from regardant.tasks.question_answering.answerer import QuestionAnswerer
from regardant.tasks.question_answering.job import QuestionAnsweringJob
from regardant.tasks.question_answering.windows import EncodedQuestions, WindowShape, keep_questions, read_questions
from regardant.training.metrics import Metric


class AnsweringConfig(Config):
    """Settings of the windows of long contexts, and of the choice of answers."""

    stride: int | None = Field(None, gt=0)
    """Tokens from the start of a window of a long context to that of the next. Empty: half of those that fit beside the
    question. Fewer where an answer of `max_answer_length` tokens would not be whole in any window."""

    max_answer_length: int = Field(30, gt=0)
    """Maximum number of tokens of an answer."""


class QuestionAnsweringConfig(ItemsConfig):
    """Configuration of a model that answers questions by spans of their contexts."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("f1", higher_is_better=True),
        Metric("exact_match", higher_is_better=True),
        Metric("no_answer_f1", higher_is_better=True),
        Metric("loss", higher_is_better=False, unit="nats per window"),
    )

    task: Literal["question_answering"] = "question_answering"
    """The name of the task."""

    data: QuestionsConfig
    """Questions with contexts and answers."""

    input: TextModalityConfig = TextModalityConfig()
    """Tokenizer, which turns questions and contexts into tokens."""

    head: SpanConfig = SpanConfig(no_answer=True)
    """The head that scores starts and ends."""

    answering: AnsweringConfig = AnsweringConfig()
    """Settings of the windows of long contexts, and of the choice of answers."""

    @model_validator(mode="after")
    def windows_are_read_whole(self) -> Self:
        """Refuse a head without a class token, and batches that are smaller than a window."""
        if not self.head.no_answer:
            raise ValueError("head.no_answer: a part of a context may have no answer: set head.no_answer=true")
        if self.training.batch_tokens < self.model.max_length:
            raise ValueError(
                f"training.batch_tokens ({self.training.batch_tokens}) must be at least model.max_length "
                f"({self.model.max_length}), the size of a window: raise the first or lower the second"
            )
        return self

    @property
    def modality(self) -> QuestionsModalityConfig:
        """The modality of `input`, with a context beside each text."""
        return QuestionsModalityConfig(**dict(self.input))

    def window_shape(self, max_length: int) -> WindowShape:
        """Return the sizes of the windows that a model of `max_length` tokens reads."""
        return WindowShape(max_length, self.answering.max_answer_length, self.answering.stride)


class QuestionAnswering(Task):
    """Answering of questions by spans of their contexts."""

    name = "question_answering"
    config = QuestionAnsweringConfig

    def prepare(self, config: QuestionAnsweringConfig, run: Path, log: Log) -> PreparedItems:
        sets: dict[str, list[tuple[ContextQuestion, int]]] = {}
        if not (run / "data" / MARKER).is_file():
            read = config.data.read(config.seed)
            keep_questions(run / "data", read)
            sets = {name: [(one, 0) for one in questions] for name, questions in read.items()}
        codec, kept, fingerprints = keep_items(run, config, sets, log)
        model = seeded(config, codec, 2, run)
        shape = config.window_shape(model.max_length("input"))
        splits = {
            name: EncodedQuestions.of_questions(split.items, read_questions(run / "data", name), shape)
            for name, split in kept.items()
        }
        for name, split in splits.items():
            if (more := len(split) - len(split.questions)) > 0:
                log(f"{name}: {len(split):,} windows of {shape.max_length} tokens, {more:,} more than questions")
        return PreparedItems(config, QuestionAnsweringJob(config, codec, splits, model), fingerprints)

    def open(self, config: QuestionAnsweringConfig, run: Path, device: torch.device) -> QuestionAnswerer:
        self.require_trained(run)
        codec = config.modality.load(run)
        return QuestionAnswerer(config, run, codec, build(config, codec, 2), device)
