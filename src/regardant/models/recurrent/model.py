"""The recurrent encoder-decoder: reads a source into states, writes a target from them.

Shape legend: B sentences, W beams, S source length, T target length, V target vocabulary, M size of an embedding.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regardant.layers.dropout import Dropout, share_key
from regardant.layers.linear import Linear
from regardant.layers.recurrent import RecurrentEncoder
from regardant.models.base import Model, widen
from regardant.models.heads import Loss, NextToken
from regardant.models.recurrent.config import RecurrentConfig
from regardant.models.recurrent.decoders import DECODERS, DecoderMemory, ReadSource
from regardant.models.representations.tokens import real_tokens


@dataclass
class RecurrentState:
    """Implements `models.base.DecodingState`."""

    memory: DecoderMemory
    beam_size: int = 1
    """Of a sentence, so far."""

    def reorder(self, beams: Int[Tensor, "B W"]) -> None:
        if self.beam_size > 1 or beams.shape[1] > 1:
            first = torch.arange(len(beams), device=beams.device)[:, None] * self.beam_size
            self.memory = self.memory.take((first + beams).flatten())
            self.beam_size = beams.shape[1]

    def keep(self, sentences: Int[Tensor, " B2"]) -> None:
        beams = torch.arange(self.beam_size, device=sentences.device)
        memory = self.memory.take((sentences[:, None] * self.beam_size + beams).flatten())
        self.memory = replace(memory, asked=None if memory.asked is None else memory.asked.keep(sentences))


class RecurrentEncoderDecoder(Model):
    """Reads token by token and writes token by token."""

    def __init__(self, config: RecurrentConfig, source_vocab_size: int, target_vocab_size: int) -> None:
        super().__init__()
        if config.joint and source_vocab_size != target_vocab_size:
            raise ValueError(
                f"tie_embeddings 'all' needs one vocabulary, but the source has {source_vocab_size} words and the "
                f"target {target_vocab_size}: choose 'target'"
            )
        self.config: RecurrentConfig = config
        width = config.embedding_size
        self.source = nn.Embedding(source_vocab_size, width)
        self.target = nn.Embedding(target_vocab_size, width)
        for table in (self.source, self.target):
            nn.init.normal_(table.weight, std=width**-0.5)
        self.source_dropout, self.target_dropout = Dropout(config.dropout), Dropout(config.dropout)
        self.output_dropout = Dropout(config.dropout)
        self.encoder = RecurrentEncoder(
            config.cell,
            width,
            config.hidden_size,
            config.num_layers,
            config.dropout,
            bidirectional=config.bidirectional,
            combine=config.combine,
        )
        self.decoder = DECODERS[type(config.decoder)](config)
        self.narrow = Linear(config.hidden_size, width)
        self.head = NextToken(width, target_vocab_size)
        if config.tie_embeddings != "none":
            self.target.weight = self.head.weight
        if config.joint:
            self.source.weight = self.head.weight
        self.check_lengths()
        self.dropout_key = share_key(self)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T1"],
        label_smoothing: float = 0.0,
        z_loss: float = 0.0,
    ) -> Loss:
        """Teacher forcing: the decoder reads target[:, :-1] (from SOS on) and has to say target[:, 1:] (to EOS)."""
        return self.head.loss(self._decode(source, target[:, :-1]), target[:, 1:], label_smoothing, z_loss)

    def scores(self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """Logits of the token after each of `target`, which starts with SOS."""
        return self.head.scores(self._decode(source, target))

    def encode(self, source: Int[Tensor, "B S"]) -> ReadSource:
        """The memory that the decoder starts from, and asks."""
        real = real_tokens(source)
        states, last = self.encoder(self.source_dropout(self.source(source)), real)
        return ReadSource(states, real, last)

    def start(self, memory: ReadSource, beam_size: int, max_length: int) -> RecurrentState:
        """The state before the first target token."""
        return RecurrentState(self.decoder.start(memory))

    def step(self, tokens: Int[Tensor, "B W"], state: RecurrentState) -> Float[Tensor, "B W V"]:
        """Logits of the token after the newest one of every beam; `state` is changed in place."""
        widen(state, tokens)
        x = self.target_dropout(self.target(tokens.reshape(-1)))
        vectors, state.memory = self.decoder.step(x, state.memory)
        return self.head.scores(self._narrowed(vectors)).view(*tokens.shape, -1)

    def _decode(self, source: Tensor, target: Tensor) -> Tensor:
        vectors = self.decoder.run(self.target_dropout(self.target(target)), self.encode(source))
        return self._narrowed(vectors)

    def _narrowed(self, vectors: Tensor) -> Tensor:
        narrowed: Tensor = self.narrow(self.output_dropout(vectors))
        return narrowed
