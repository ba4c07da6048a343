"""Decoder-only models, which continue a text token by token; and the decoder-only Transformer.

Radford et al. 2019, "Language models are unsupervised multitask learners" (GPT-2): layers of causal self-attention and
feed-forward with a norm before each, learned positions, GELU, one matrix for input and output.

Shape legend: B texts, T tokens, M d_model, V vocabulary.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from regardant.attention import ScaledDotProductConfig
from regardant.layers.dropout import share_key
from regardant.layers.feed_forward import FeedForwardConfig, LinearFeedForwardConfig
from regardant.layers.mixers import MixerConfig
from regardant.models.base import AttentionKind, CausalConfig, CausalModel
from regardant.models.heads import Head, HeadBuilder
from regardant.models.representations import Representation, RepresentationBuilder
from regardant.models.sequence import SequenceDecoder
from regardant.models.stacks import Decoder
from regardant.models.transformer import TransformerConfig, initialise
from regardant.models.vectors import Vectors
from regardant.positions import PositionsConfig
from regardant.positions.learned import LearnedConfig


class DecoderOnly(CausalModel):
    """Causal model of texts: scores the next token after every token."""

    former_names: ClassVar[Mapping[str, str]] = {
        "embedding.": "text.",
        "layers.": "decoder.layers.",
        "final_norm.": "decoder.final_norm.",
        "positions.": "decoder.positions.",
    }

    def __init__(self, config: CausalConfig, text: Representation, decoder: SequenceDecoder, head: Head) -> None:
        super().__init__()
        self.config = config
        self.text = text
        self.decoder = decoder
        self.head = head

    @property
    def attention_kinds(self) -> Mapping[str, AttentionKind]:
        return {"decoder.self_attention": AttentionKind("text", "text", causal=True)}

    def vectors(self, text: Int[Tensor, "B T"]) -> Vectors:
        """Return the vectors of all tokens, each computed from the tokens up to it."""
        decoded: Vectors = self.decoder(self.text(text))
        return decoded

    def start(self, beam_size: int, max_length: int) -> Any:
        return self.decoder.start(None, beam_size, max_length)

    def step(self, tokens: Int[Tensor, "B T"], state: Any) -> Float[Tensor, "B V"]:
        vectors = self.decoder.step(self.text(tokens, start=state.length).values, state)
        return self.head.scores(Vectors(vectors[:, -1]))


Preset = Literal["tiny", "small", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "gpt3"]


def _sizes(num_layers: int, num_heads: int, d_model: int, max_length: int, dropout: float) -> dict[str, Any]:
    return {
        "num_layers": num_layers,
        "num_heads": num_heads,
        "d_model": d_model,
        "d_ff": 4 * d_model,
        "max_length": max_length,
        "dropout": dropout,
    }


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": _sizes(4, 4, 128, 256, 0.0),
    "small": _sizes(6, 6, 384, 256, 0.2),
    "gpt2": _sizes(12, 12, 768, 1024, 0.1),
    "gpt2-medium": _sizes(24, 16, 1024, 1024, 0.1),
    "gpt2-large": _sizes(36, 20, 1280, 1024, 0.1),
    "gpt2-xl": _sizes(48, 25, 1600, 1024, 0.1),
    "gpt3": _sizes(96, 96, 12288, 2048, 0.0),
}
"""small: nanoGPT's model of characters. gpt2 to gpt2-xl: Radford et al. 2019, table 2, and the released weights. gpt3:
Brown et al. 2020, https://arxiv.org/abs/2005.14165, table 2.1, here with dense attention in all layers."""


class DecoderOnlyConfig(TransformerConfig, CausalConfig):
    """The decoder-only Transformer (Radford et al. 2019) and all its settings."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS

    kind: Literal["decoder_only"] = "decoder_only"

    preset: Preset | None = None
    """Sizes to start from. Sizes in the recipe take precedence, unless an override names the preset."""

    num_layers: int = Field(4, gt=0, le=1000)
    """Number of layers."""

    self_attention: MixerConfig = ScaledDotProductConfig()
    """Causal self-attention among the tokens; or a convolution, or a dense layer over positions."""

    d_ff: int = Field(512, gt=0)
    """Inner width of the feed-forward network."""

    feed_forward: FeedForwardConfig = LinearFeedForwardConfig(activation="gelu")
    """Feed-forward network after attention: of each token by itself, or with those before it (kind convolution)."""

    dropout: float = Field(0.0, ge=0, lt=1)
    """Probability that a value is zeroed: on embeddings, on each sublayer's output, inside the feed-forward network."""

    positions: PositionsConfig = LearnedConfig()
    """Encoding of the tokens' positions."""

    scale_embeddings: bool = False
    """Multiply embeddings by sqrt(d_model)."""

    tie_embeddings: Literal["all", "none"] = "all"
    """Weight tying. all: input and output share one matrix. none: they have two."""

    @model_validator(mode="before")
    @classmethod
    def fill_in_preset(cls, given: Any) -> Any:
        """Take the preset's sizes where none is given."""
        if not isinstance(given, dict) or not isinstance(given.get("preset"), str):
            return given
        return {**PRESETS.get(given["preset"], {}), **given}

    @model_validator(mode="after")
    def positions_leave_room(self) -> "DecoderOnlyConfig":
        """Refuse concatenated positions that leave too few dimensions to the embedding."""
        self.require_room_beside_positions(self.max_length, tied=self.tie_embeddings != "none")
        return self

    def build(self, text: RepresentationBuilder, head: HeadBuilder) -> DecoderOnly:
        positions = self.build_positions(self.max_length, causal=True)
        decoder = Decoder(self, self.num_layers, self.self_attention, None, positions, self.max_length)
        model = DecoderOnly(self, text(self.input_shape(positions)), decoder, head(self.d_model))
        initialise(model)
        if self.tie_embeddings == "all":
            model.tie("text", instead="none")
        model.check_lengths()
        model.dropout_key = share_key(model)
        return model
