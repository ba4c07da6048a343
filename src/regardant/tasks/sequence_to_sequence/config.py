"""Configuration of tasks that answer an item by a text."""

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from pydantic import model_validator

# A kind is known by being imported.
from regardant.data import captions, digit_sequences, labelled_sources  # noqa: F401
from regardant.data.grammar import config as grammar  # noqa: F401
from regardant.data.labelled import LabelledConfig
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.errors import ConfigError
from regardant.evaluation.texts import TextMetrics
from regardant.evaluation.translation import TranslationMetrics
from regardant.generation.config import GenerationConfig
from regardant.modalities import ModalityConfig, TextModalityConfig
from regardant.models import EncoderDecoderConfig, SequenceToSequenceConfig
from regardant.models.heads import WordScoresConfig
from regardant.tasks.base import TaskConfig
from regardant.training.config import NextTokenTraining
from regardant.training.metrics import Metric

TEXT_METRICS = {
    metric.name: metric
    for metric in (
        Metric("bleu", higher_is_better=True, noise=0.5),
        Metric("chrf", higher_is_better=True),
        Metric("exact_match", higher_is_better=True),
        Metric("word_error_rate", higher_is_better=False),
        Metric("bracket_f1", higher_is_better=True),
        Metric("well_formed", higher_is_better=True),
    )
}
"""Scores that `evaluation.metrics` may name, with their directions."""


class TextAnswerConfig(TaskConfig):
    """Base of configurations of models that read a source and write a text."""

    inspect_options: ClassVar[tuple[str, ...]] = ("target", "beam_size")

    views: ClassVar[tuple[str, ...]] = ("beam search", "token by token")

    tokenizer: TokenizerConfig = TokenizerConfig()
    """Tokenizer, which turns text into tokens."""

    model: SequenceToSequenceConfig = EncoderDecoderConfig()
    """The model that reads a source and writes a text."""

    head: WordScoresConfig = WordScoresConfig()
    """The head that scores the next token of the text."""

    training: NextTokenTraining
    """Settings of training."""

    generation: GenerationConfig = GenerationConfig()
    """Settings of the search for a text."""

    evaluation: TranslationMetrics = TranslationMetrics()
    """The comparison of texts with their references."""

    @model_validator(mode="after")
    def trees_are_of_whole_tokens(self) -> Self:
        """Refuse `generation.trees` with a tokenizer that splits brackets or words."""
        if self.generation.trees and self.tokenizer.kind != "whitespace":
            raise ValueError(
                f"generation.trees needs tokens that are whole brackets and words, and tokenizer.kind is "
                f"{self.tokenizer.kind!r}: set tokenizer.kind=whitespace or leave generation.trees out"
            )
        return self

    @property
    def metrics(self) -> Sequence[Metric]:
        return [
            *(TEXT_METRICS[name] for name in self.evaluation.metrics),
            Metric("loss", higher_is_better=False, unit="nats per token"),
            Metric("perplexity", higher_is_better=False),
        ]

    @property
    def metric(self) -> Metric:
        named = self.training.best_by
        if named in TEXT_METRICS and named not in self.evaluation.metrics:
            raise ConfigError(f"training.best_by: given {named!r}, which evaluation.metrics lacks: add it there")
        return super().metric


class SequenceToSequenceTaskConfig(TextAnswerConfig):
    """Configuration of a model that writes a text for an item of any kind."""

    task: Literal["sequence_to_sequence"] = "sequence_to_sequence"
    """The name of the task."""

    data: LabelledConfig
    """Items; the label of each is its text."""

    input: ModalityConfig = TextModalityConfig()
    """The kind of item."""

    evaluation: TextMetrics = TextMetrics()
    """The comparison of texts with their references."""

    @property
    def modality(self) -> ModalityConfig:
        return self.input
