"""What a translation recipe says."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator

from regardant.data.grammar.config import GrammarConfig
from regardant.data.parallel import PairsConfig
from regardant.data.tokenizers import TokenizerConfig
from regardant.data.toys import CopyConfig, ReverseConfig
from regardant.evaluation.translation import TranslationMetrics
from regardant.generation.config import GenerationConfig
from regardant.models import EncoderDecoderConfig, ModelConfig
from regardant.tasks.base import Prepared, Report, Say, TaskConfig, Trained


class TranslationConfig(TaskConfig):
    """From sentence pairs to a translator."""

    verbs: ClassVar[tuple[str, ...]] = ("translate", "score", "evaluate", "compare", "export", "inspect")

    task: Literal["translation"] = "translation"
    """What is learned."""

    data: Annotated[PairsConfig | GrammarConfig | ReverseConfig | CopyConfig, Field(discriminator="kind")]
    """Sentence pairs."""

    tokenizer: TokenizerConfig = TokenizerConfig()
    """How text becomes tokens."""

    model: ModelConfig = EncoderDecoderConfig()
    """What reads and writes."""

    generation: GenerationConfig = GenerationConfig()
    """How it writes."""

    evaluation: TranslationMetrics = TranslationMetrics()
    """How what it writes is scored."""

    @model_validator(mode="after")
    def tied_vocabularies_are_joint(self) -> Self:
        """One embedding matrix needs one vocabulary."""
        if self.model.joint and not self.tokenizer.joint:
            raise ValueError(
                "model.tie_embeddings is 'all', which needs one vocabulary, but tokenizer.joint is false: "
                "set model.tie_embeddings=target or tokenizer.joint=true"
            )
        return self

    def prepare(self, run: Path, say: Say) -> Prepared:
        from regardant.tasks.translation.task import prepare_training  # which reads this configuration, as those below

        return prepare_training(self, run, say)

    def open(self, run: Path, device: torch.device) -> Trained:
        from regardant.tasks.translation.trained import TrainedTranslator

        return TrainedTranslator(self, run, device)

    def compare(self, plans: Mapping[Path, Mapping[str, Any]]) -> Report:
        from regardant.tasks.translation.comparison import compare_runs
        from regardant.tasks.translation.comparison_page import ComparisonReport

        return ComparisonReport(compare_runs(plans, self.evaluation))
