"""The recipe of a translator."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from regardant.config import Config
from regardant.data.grammar.config import GrammarConfig
from regardant.data.parallel import PairsConfig
from regardant.data.streamed import require_other_end
from regardant.data.streamed_pairs import StreamedPairsConfig
from regardant.data.toys import (
    AdditionConfig,
    CopyConfig,
    RecallConfig,
    ReverseConfig,
    SortConfig,
    VariableDistanceConfig,
)
from regardant.tasks.sequence_to_sequence.config import TextAnswerConfig


class AlignmentGuidance(Config):
    """Supervision of one head of the cross-attention by word alignments (Garg et al. 2019,
    https://arxiv.org/abs/1909.02074, section 4.2): the loss is that of the words + weight x that of the alignments."""

    weight: float = Field(0.05, gt=0)
    """Weight of the alignments' cross-entropy, in nats a token."""

    layer: int = -1
    """Layer of the decoder, counted from 0; -1 is the last, -2 the one below it, which Garg et al. supervise."""

    head: int = Field(0, ge=0)
    """Head of that layer, counted from 0."""


Toys = CopyConfig | ReverseConfig | SortConfig | RecallConfig | AdditionConfig | VariableDistanceConfig
"""Synthetic corpora."""


class TranslationConfig(TextAnswerConfig):
    """Configuration of training a translator from sentence pairs."""

    verbs: ClassVar[tuple[str, ...]] = ("translate",)

    task: Literal["translation"] = "translation"
    """The name of the task."""

    data: Annotated[PairsConfig | StreamedPairsConfig | GrammarConfig | Toys, Field(discriminator="kind")]
    """Sentence pairs."""

    alignment_guidance: AlignmentGuidance | None = None
    """Supervision of one attention head by the alignments in data.links. Empty: no head is supervised."""

    @model_validator(mode="after")
    def tied_vocabularies_are_joint(self) -> Self:
        """Raise ValueError if tied embeddings have no joint vocabulary."""
        if self.model.joint and not self.tokenizer.joint and self.tokenizer.kind != "pretrained":
            raise ValueError(
                "model.tie_embeddings is 'all', which needs one vocabulary, but tokenizer.joint is false: "
                "set model.tie_embeddings=target or tokenizer.joint=true"
            )
        return self

    @model_validator(mode="after")
    def a_stream_has_another_end(self) -> Self:
        """Refuse a budget in passes over a stream."""
        if isinstance(self.data, StreamedPairsConfig):
            require_other_end(self.training.max_epochs)
        return self

    @model_validator(mode="after")
    def guidance_has_its_links(self) -> Self:
        """Raise ValueError if `alignment_guidance` or `data.links` is set alone, or if training hides the weights."""
        links = getattr(self.data, "links", None)
        if self.alignment_guidance is None:
            if links is not None:
                raise ValueError(
                    "data.links are for alignment_guidance: set alignment_guidance.weight=0.05 or leave them out"
                )
            return self
        if links is None:
            raise ValueError(
                "alignment_guidance needs alignments of the training text: set data.links to a file of them, or of the "
                "embedded grammar to gold"
            )
        if getattr(self.model, "recomputes", False):
            raise ValueError(
                "alignment_guidance needs weights that reversible residuals and activation_checkpointing discard: "
                "choose one"
            )
        if self.training.compile:
            raise ValueError("alignment_guidance observes attention, which training.compile fuses: choose one")
        return self
