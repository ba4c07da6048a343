"""A recurrent tagger used as a translator: one target token for each source token, in their order.

What a first idea of neural translation gets wrong: it fails where lengths or word order differ. When the source has
been read it reads EOS, so that a target may be longer than its source.

Shape legend: B sentences, W beams, S source length, T target length, V target vocabulary.
"""

from dataclasses import dataclass, field
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from regardant.data.vocabulary import EOS, PAD
from regardant.layers.dropout import Dropout, share_key
from regardant.layers.recurrent import Cell, RecurrentStack, State, mapped
from regardant.models.base import Model, ModelConfig
from regardant.models.heads import Loss, NextToken


class OneToOneConfig(ModelConfig):
    """A recurrent network that says a target token at every source token."""

    kind: Literal["one_to_one"] = "one_to_one"

    cell: Cell = "gru"
    """The kind of recurrence."""

    embedding_size: int = Field(128, gt=0)
    """Numbers of a token's vector."""

    hidden_size: int = Field(256, gt=0)
    """Numbers of a state."""

    num_layers: int = Field(1, gt=0)
    """Layers, one above the other."""

    bptt: int | None = Field(None, gt=0)
    """Tokens that a gradient goes back in time. Empty: all of them."""

    dropout: float = Field(0.3, ge=0, lt=1)
    """Chance that a value is zeroed: of embeddings, between layers, before the output."""

    def build(self, source_vocab_size: int, target_vocab_size: int) -> Model:
        return OneToOne(self, source_vocab_size, target_vocab_size)


@dataclass
class OneToOneState:
    """Implements `models.base.DecodingState`: beams do not differ, since nothing of the target is read."""

    source: Int[Tensor, "B S"]
    state: State = field(metadata={"rows": 1})
    length: int = 0

    def reorder(self, beams: Int[Tensor, "B W"]) -> None:
        """Every beam of a sentence stands where the others do."""

    def keep(self, sentences: Int[Tensor, " B2"]) -> None:
        self.source = self.source[sentences]
        self.state = mapped(self.state, lambda part: part[:, sentences])


class OneToOne(Model):
    """Says what it says of the source alone: a step does not know what was written before."""

    def __init__(self, config: OneToOneConfig, source_vocab_size: int, target_vocab_size: int) -> None:
        super().__init__()
        self.config: OneToOneConfig = config
        self.source = nn.Embedding(source_vocab_size, config.embedding_size)
        nn.init.normal_(self.source.weight, std=config.embedding_size**-0.5)
        self.embedding_dropout, self.output_dropout = Dropout(config.dropout), Dropout(config.dropout)
        self.stack = RecurrentStack(
            config.cell, config.embedding_size, config.hidden_size, config.num_layers, config.dropout
        )
        self.head = NextToken(config.hidden_size, target_vocab_size)
        self.dropout_key = share_key(self)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T1"],
        label_smoothing: float = 0.0,
        z_loss: float = 0.0,
    ) -> Loss:
        """Says target[:, 1:] (to EOS) whatever target[:, :-1] is."""
        said = target[:, 1:]
        return self.head.loss(self._vectors(source, said.shape[1]), said, label_smoothing, z_loss)

    def scores(self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """Logits of the token after each of `target`, of which nothing but the length counts."""
        return self.head.scores(self._vectors(source, target.shape[1]))

    def encode(self, source: Int[Tensor, "B S"]) -> Int[Tensor, "B S"]:
        """The source itself: it is read while the target is written."""
        return source

    def start(self, memory: Int[Tensor, "B S"], beam_size: int, max_length: int) -> OneToOneState:
        """The state before the first target token."""
        return OneToOneState(memory, self.stack.start(self.source(memory)))

    def step(self, tokens: Int[Tensor, "B W"], state: OneToOneState) -> Float[Tensor, "B W V"]:
        """Logits of the token after the newest one of every beam; `state` is changed in place."""
        source = _with_ends(state.source, state.length + 1)[:, state.length : state.length + 1]
        vectors, state.state = self.stack(self.embedding_dropout(self.source(source)), state.state)
        state.length += 1
        return self.head.scores(self.output_dropout(vectors)).expand(-1, tokens.shape[1], -1)

    def _vectors(self, source: Tensor, length: int) -> Tensor:
        x = self.embedding_dropout(self.source(_with_ends(source, length)[:, :length]))
        vectors: Tensor = self.output_dropout(self.stack(x, self.stack.start(x), self.config.bptt)[0])
        return vectors


def _with_ends(source: Tensor, length: int) -> Tensor:
    """At least `length` tokens, EOS for padding and past the end."""
    source = F.pad(source, (0, max(0, length - source.shape[1])), value=EOS)
    return source.masked_fill(source == PAD, EOS)
