"""What a translation recipe says."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from regardant.config import Config
from regardant.data.grammar.config import GrammarConfig
from regardant.data.parallel import PairsConfig
from regardant.data.tokenizers import TokenizerConfig
from regardant.data.toys import CopyConfig, ReverseConfig
from regardant.evaluation.translation import TranslationMetrics
from regardant.generation.config import GenerationConfig
from regardant.models import EncoderDecoderConfig, ModelConfig
from regardant.training.config import TrainingConfig


class TranslationConfig(Config):
    """From sentence pairs to a translator."""

    task: Literal["translation"] = "translation"
    """What is learned."""

    seed: int = Field(1, ge=0, lt=2**63)
    """Decides what is split off, the first weights, the order of batches and all dropout."""

    data: Annotated[PairsConfig | GrammarConfig | ReverseConfig | CopyConfig, Field(discriminator="kind")]
    """Sentence pairs."""

    tokenizer: TokenizerConfig = TokenizerConfig()
    """How text becomes tokens."""

    model: ModelConfig = EncoderDecoderConfig()
    """What reads and writes."""

    training: TrainingConfig
    """How it learns."""

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
