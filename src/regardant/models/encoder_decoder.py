"""Encoder-decoder models: an encoder reads a source, a decoder writes a target; and the Transformer of this kind.

Vaswani et al. 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762.

Shape legend: B sentences, W beams, S source length, T target length, V target vocabulary, M d_model.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import model_validator
from torch import Tensor

from regardant.layers.dropout import share_key
from regardant.layers.linear import keep_rows
from regardant.models.base import AttentionKind, BeamState, SequenceToSequenceConfig, SequenceToSequenceModel
from regardant.models.heads import Head, HeadBuilder
from regardant.models.order import require_keys_in_any_order, require_mixing_by_pairs
from regardant.models.representations import Representation, RepresentationBuilder
from regardant.models.sequence import SequenceDecoder, SequenceEncoder
from regardant.models.stacks import Decoder, Encoder
from regardant.models.transformer import DecoderStackConfig, EncoderStackConfig, TransformerConfig, initialise
from regardant.models.vectors import Vectors

Preset = Literal["tiny", "small", "base", "big"]

Tied = Literal["all", "target", "none"]


class EncoderDecoder(SequenceToSequenceModel):
    """Model that reads the whole source and writes the target token by token."""

    def __init__(
        self,
        config: SequenceToSequenceConfig,
        source: Representation,
        target: Representation,
        encoder: SequenceEncoder,
        decoder: SequenceDecoder,
        head: Head,
    ) -> None:
        super().__init__()
        self.config = config
        self.source, self.target = source, target
        self.encoder, self.decoder = encoder, decoder
        self.head = head
        if source.grid is not None:  # all training items have as many elements
            keep_rows(encoder)

    @property
    def attention_kinds(self) -> Mapping[str, AttentionKind]:
        return {
            "encoder.self_attention": AttentionKind("source", "source"),
            "decoder.self_attention": AttentionKind("target", "target", causal=True),
            "decoder.cross_attention": AttentionKind("target", "source"),
        }

    def vectors(self, source: Any, target: Int[Tensor, "B T"]) -> Vectors:
        """Return the vectors of the target, which starts with SOS, by teacher forcing."""
        vectors: Vectors = self.decoder(self.target(target), self.encode(source))
        return vectors

    def encode(self, source: Any) -> Vectors:
        """Return the memory that the decoder attends to."""
        memory: Vectors = self.encoder(self.source(source))
        return memory

    def start(self, memory: Vectors, beam_size: int, max_length: int) -> Any:
        return self.decoder.start(memory, beam_size, max_length)

    def step(self, tokens: Int[Tensor, "B W"], state: Any) -> Float[Tensor, "B W V"]:
        widen(state, tokens)
        x = self.target(tokens.reshape(-1, 1), start=state.length).values
        return self.head.scores(Vectors(self.decoder.step(x, state))).view(*tokens.shape, -1)

    def tie_embeddings(self, tied: Tied) -> None:
        """Tie target and output, or source, target and output. Raises ValueError if they cannot share one matrix."""
        if tied == "none":
            return
        self.tie("target", instead="none")
        if tied == "all":
            self.tie("source", instead="target")


def widen(state: BeamState, tokens: Tensor) -> None:
    """Expand a state of one beam to the beams of `tokens` [B, W], which all continue it."""
    if state.beam_size == 1 < tokens.shape[1]:
        state.reorder(torch.zeros_like(tokens))


def _sizes(d_model: int, num_layers: int, num_heads: int, d_ff: int, dropout: float, norm: str) -> dict[str, Any]:
    return {
        "d_model": d_model,
        "num_heads": num_heads,
        "d_ff": d_ff,
        "dropout": dropout,
        "norm": norm,
        "encoder": {"num_layers": num_layers},
        "decoder": {"num_layers": num_layers},
    }


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": _sizes(128, 4, 4, 256, 0.3, "pre"),
    "small": _sizes(256, 3, 4, 1024, 0.1, "pre"),
    "base": _sizes(512, 6, 8, 2048, 0.1, "post"),
    "big": _sizes(1024, 6, 16, 4096, 0.3, "post"),
}
"""tiny: Wu et al. 2021 (https://arxiv.org/abs/2105.14462). base, big: Vaswani et al. 2017, table 3."""


class EncoderDecoderConfig(TransformerConfig, SequenceToSequenceConfig):
    """The encoder-decoder Transformer (Vaswani et al. 2017) and all its settings."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS

    kind: Literal["encoder_decoder"] = "encoder_decoder"

    preset: Preset | Literal["auto"] | None = "tiny"
    """Sizes to start from. Sizes in the recipe take precedence, unless an override names the preset. auto: chosen from
    the size of the corpus."""

    memory: Literal["final", "per_layer"] = "final"
    """Encoder layer that decoder layers attend to: the last (final), or the one at the same depth (per_layer)."""

    tie_embeddings: Tied = "all"
    """Weight tying. all: source, target and output share one matrix, which needs a joint vocabulary. target: target and
    output share one. none: they have three."""

    encoder: EncoderStackConfig = EncoderStackConfig()
    """Encoder, which reads the source."""

    decoder: DecoderStackConfig = DecoderStackConfig()
    """Decoder, which writes the target."""

    @model_validator(mode="before")
    @classmethod
    def fill_in_preset(cls, given: Any) -> Any:
        """Take the preset's sizes where none is given."""
        if not isinstance(given, dict):
            return given
        preset = given.get("preset", "tiny")
        sizes = PRESETS.get(preset, {}) if isinstance(preset, str) else {}
        filled = {**sizes, **given}
        for stack in ("encoder", "decoder"):
            if isinstance(given.get(stack), dict) and stack in sizes:
                filled[stack] = {**sizes[stack], **given[stack]}
        return filled

    @model_validator(mode="after")
    def layers_have_their_memory(self) -> "EncoderDecoderConfig":
        """Refuse memory=per_layer with reversible residuals, or with stacks of unequal depth."""
        if self.memory == "per_layer" and self.residual == "reversible":
            raise ValueError("memory 'per_layer' keeps activations that reversible residuals discard: choose one")
        if self.memory == "per_layer" and self.encoder.num_layers != self.decoder.num_layers:
            raise ValueError(
                f"memory 'per_layer' pairs layers, but the encoder has {self.encoder.num_layers} and the decoder "
                f"{self.decoder.num_layers}: make them equal"
            )
        return self

    @model_validator(mode="after")
    def positions_leave_room(self) -> "EncoderDecoderConfig":
        """Refuse concatenated positions that leave too few dimensions to the embedding."""
        self.require_room_beside_positions(self.max_length, tied=self.tie_embeddings != "none")
        return self

    @property
    def joint(self) -> bool:
        return self.tie_embeddings == "all"

    def build(self, source: RepresentationBuilder, target: RepresentationBuilder, head: HeadBuilder) -> EncoderDecoder:
        of_source, of_target = (self.build_positions(self.max_length, causal=causal) for causal in (False, True))
        decoder = self.decoder
        model = EncoderDecoder(
            self,
            source(self.input_shape(of_source)),
            target(self.input_shape(of_target)),
            Encoder(self, self.encoder, of_source, self.max_length, keeps_layers=self.memory == "per_layer"),
            Decoder(
                self, decoder.num_layers, decoder.self_attention, decoder.cross_attention, of_target, self.max_length
            ),
            head(self.d_model),
        )
        initialise(model)
        model.tie_embeddings(self.tie_embeddings)
        model.check_lengths()
        if not model.source.reads_order:
            require_mixing_by_pairs(model.encoder, model.source, self.encoder.self_attention, self.feed_forward)
            require_keys_in_any_order(model.decoder, model.source)
        model.dropout_key = share_key(model)
        return model
