"""Configuration of a language modelling recipe."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from regardant.data import digit_streams, in_context  # noqa: F401  # a kind is known by being imported
from regardant.data.streamed import require_other_end
from regardant.data.streamed_text import StreamedTextConfig
from regardant.data.text import TextConfig
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.generation.sampling import SamplingConfig
from regardant.models import CausalConfig
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.heads import WordScoresConfig
from regardant.tasks.base import TaskConfig
from regardant.training.config import NextTokenTraining
from regardant.training.metrics import Metric


class TextTokenizerConfig(TokenizerConfig):
    """Tokenizer of a text to continue. All of its kinds keep every space and every line end."""

    kind: Literal["character", "byte", "code", "pretrained"] = "character"
    """Kind of tokens. code: pieces between a character and a word, with their white space. pretrained: those of an
    imported model."""

    joint: Literal[True] = True
    """One vocabulary, since there is one text."""


class TextTrainingConfig(NextTokenTraining):
    """Budget, batches, optimizer, schedule, validation and checkpoints."""

    batch_tokens: int = Field(4096, gt=0)
    """Tokens of a batch, in windows of model.max_length."""

    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of the target distribution spread over the whole vocabulary."""

    carry_state: bool = False
    """Start each window of a recurrent model from the state after the window before it in the text (truncated
    back-propagation through time). False: start each window without a state."""


class LanguageModellingConfig(TaskConfig):
    """Configuration of training a model that continues a text."""

    verbs: ClassVar[tuple[str, ...]] = ("generate",)

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("loss", higher_is_better=False, unit="nats per token"),
        Metric("perplexity", higher_is_better=False),
        Metric("bits_per_character", higher_is_better=False, unit="bits"),
    )

    task: Literal["language_modelling"] = "language_modelling"
    """Name of the task."""

    data: TextConfig
    """A text."""

    model: CausalConfig = DecoderOnlyConfig()
    """Model that reads and continues a text."""

    head: WordScoresConfig = WordScoresConfig()
    """Head that scores the next token."""

    training: TextTrainingConfig
    """Settings of training."""

    tokenizer: TextTokenizerConfig = TextTokenizerConfig()
    """Tokenizer, which turns text into tokens."""

    generation: SamplingConfig = SamplingConfig()
    """Sampling of continuations."""

    @model_validator(mode="after")
    def state_is_there_to_be_carried(self) -> Self:
        """Refuse to carry the state of a model that has none."""
        if self.training.carry_state and not self.model.carries_state:
            carriers = [kind for kind, config in CausalConfig.kinds().items() if config.carries_state]
            raise ValueError(
                f"training.carry_state: given true, but model.kind {self.model.kind} has no state to carry: set "
                f"model.kind={' or '.join(carriers)}, or leave training.carry_state out"
            )
        return self

    @model_validator(mode="after")
    def a_stream_is_read_in_any_order(self) -> Self:
        """Refuse a budget in passes over a stream, and a state that follows its text."""
        if isinstance(self.data, StreamedTextConfig):
            require_other_end(self.training.max_epochs)
            if self.training.carry_state:
                raise ValueError(
                    "training.carry_state: given true, but the windows of a stream follow no order: leave it out, or "
                    "read the text from files (data.kind=files)"
                )
        return self
