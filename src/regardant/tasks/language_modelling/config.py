"""What a language modelling recipe says."""

from typing import ClassVar, Literal

from pydantic import Field

from regardant.data.text import TextConfig
from regardant.data.tokenizers import TokenizerConfig
from regardant.generation.sampling import SamplingConfig
from regardant.models import CausalConfig
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.tasks.base import TaskConfig
from regardant.training.config import NextTokenTraining
from regardant.training.job import Metric


class TextTokenizerConfig(TokenizerConfig):
    """How text becomes tokens. Of these kinds alone every space and every line end comes back."""

    kind: Literal["character", "byte"] = "character"
    """What a token is."""

    joint: Literal[True] = True
    """There is one text, and so one vocabulary."""


class TextTrainingConfig(NextTokenTraining):
    """Budget, batches, optimizer, schedule and what is kept."""

    batch_tokens: int = Field(4096, gt=0)
    """Tokens of a batch, in windows of model.max_length."""

    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of the target distribution spread over the whole vocabulary."""


class LanguageModellingConfig(TaskConfig):
    """From a text to a model that goes on with it."""

    verbs: ClassVar[tuple[str, ...]] = ("generate", "score", "evaluate", "measure")

    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("loss", higher_is_better=False, unit="nats per token"),
        Metric("perplexity", higher_is_better=False),
        Metric("bits_per_character", higher_is_better=False, unit="bits"),
    )

    task: Literal["language_modelling"] = "language_modelling"
    """What is learned."""

    data: TextConfig
    """A text."""

    model: CausalConfig = DecoderOnlyConfig()
    """What reads and goes on."""

    training: TextTrainingConfig
    """How it learns."""

    tokenizer: TextTokenizerConfig = TextTokenizerConfig()
    """How text becomes tokens."""

    generation: SamplingConfig = SamplingConfig()
    """How it goes on with a text."""
