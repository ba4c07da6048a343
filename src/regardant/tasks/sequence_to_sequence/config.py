"""The recipe of tasks that answer an item by a text."""

from typing import ClassVar, Literal

from regardant.data import digit_sequences, digits, folders  # noqa: F401  # a kind is known by being imported
from regardant.data.labelled import LabelledConfig
from regardant.data.tokenizers import TokenizerConfig
from regardant.evaluation.translation import TranslationMetrics
from regardant.generation.config import GenerationConfig
from regardant.modalities import ModalityConfig, TextModalityConfig
from regardant.models import EncoderDecoderConfig, SequenceToSequenceConfig
from regardant.tasks.base import TaskConfig
from regardant.training.config import NextTokenTraining
from regardant.training.metrics import Metric


class TextAnswerConfig(TaskConfig):
    """Base of recipes of models that read a source and write a text."""

    inspect_options: ClassVar[tuple[str, ...]] = ("target", "beam_size")

    views: ClassVar[tuple[str, ...]] = ("beam search", "token by token")

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("bleu", higher_is_better=True),
        Metric("loss", higher_is_better=False, unit="nats per token"),
        Metric("perplexity", higher_is_better=False),
    )

    tokenizer: TokenizerConfig = TokenizerConfig()
    """Tokenizer, which turns text into tokens."""

    model: SequenceToSequenceConfig = EncoderDecoderConfig()
    """The model that reads and writes."""

    training: NextTokenTraining
    """The training."""

    generation: GenerationConfig = GenerationConfig()
    """The search for the text."""

    evaluation: TranslationMetrics = TranslationMetrics()
    """The comparison of texts with their references."""


class SequenceToSequenceTaskConfig(TextAnswerConfig):
    """Configuration of a model that writes a text for an item of any kind."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("chrf", higher_is_better=True),
        Metric("accuracy", higher_is_better=True),
        Metric("word_error_rate", higher_is_better=False),
        Metric("bleu", higher_is_better=True),
        Metric("loss", higher_is_better=False, unit="nats per token"),
        Metric("perplexity", higher_is_better=False),
    )
    """chrF first: BLEU is 0 for texts of fewer than four words."""

    task: Literal["sequence_to_sequence"] = "sequence_to_sequence"
    """The name of the task."""

    data: LabelledConfig
    """Items; the label of each is its text."""

    input: ModalityConfig = TextModalityConfig()
    """The kind of item."""

    @property
    def modality(self) -> ModalityConfig:
        return self.input
